/* JSON schemas: which texts are valid, what is refused, and how that is said. */
#include "alloc_fail.h"
#include "llm/internal/grammar.h"
#include "schema_rows.h"
#include "steps.h"

TEST(types) {
    static const row rows[] = {
        {"{}", {"null", "[]", "{}", "\"\"", "-1.5e3", "true", NULL, "", "nul", "[1,]", "{\"a\"}"}},
        {"true", {"{\"a\": [1, {}]}", NULL, "undefined"}},
        {"{\"type\": \"null\"}", {"null", NULL, "0", "false"}},
        {"{\"type\": \"boolean\"}", {"true", "false", NULL, "null", "\"true\""}},
        {"{\"type\": \"integer\"}", {"0", "-7", "120", NULL, "-", "01", "1.5", "1e2", "+1"}},
        {"{\"type\": \"number\"}", {"0", "-7.25", "1e-05", "1.5E+16", "-0.0", NULL, ".5", "1."}},
        {"{\"type\": [\"null\", \"string\"]}", {"null", "\"a\"", NULL, "1", "[]"}},
        {"{\"enum\": [1, \"a\\n\", null, [true], {\"x\": 1.50}]}",
         {"1", "\"a\\n\"", "\"a\\u000A\"", "null", "[true]", "[ true ]", "{\"x\": 1.50}",
          "{\"x\":1.5}", NULL, "2", "\"a\"", "[]", "[true, true]", "{}", "{\"x\": 1.5, \"y\": 1}",
          "[false]"}},
        {"{\"const\": \"\\u00e9\\ud83d\\ude00/\"}",
         {"\"é😀/\"", "\"\\u00e9\\uD83D\\uDE00\\/\"", NULL, "\"é\"", "\"\\u00e9\\uD83D/\""}},
    };
    CHECK_ROWS(rows);
}

TEST(numbers) {
    static const row rows[] = {
        {"{\"type\": \"number\", \"minimum\": 0.1}",
         {"0.1", "0.10", "0.11", "1", "1e-01", "1e5", "2.5e+10", "100000", NULL, "0", "0.09", "-1",
          "0.0999", "9e-2", "1e-5", "-1e5"}},
        {"{\"type\": \"number\", \"exclusiveMinimum\": -2.5, \"exclusiveMaximum\": 1e3}",
         {"-2.4", "-2.49999", "0", "-0", "999.999", "9.99e2", "-1e-7", NULL, "-2.5", "-2.50",
          "1000", "1e3", "-3", "-1e1", "1000.0001"}},
        {"{\"type\": \"integer\", \"minimum\": -12, \"maximum\": 105}",
         {"-12", "-9", "0", "99", "100", "105", NULL, "-13", "106", "-100", "200", "1000", "1.5"}},
        {"{\"type\": \"integer\", \"minimum\": 9007199254740993}",
         {"9007199254740993", "10000000000000000", NULL, "9007199254740992"}},
        {"{\"type\": \"integer\", \"minimum\": 0, \"exclusiveMinimum\": true}",
         {"1", NULL, "0", "-1"}},
        {"{\"type\": \"integer\", \"maximum\": 1e2}", {"100", "-5", NULL, "101"}},
        {"{\"type\": \"number\", \"multipleOf\": 0.01}",
         {"1", "1.5", "-1.25", "0.10", "3.500", NULL, "0.001", "1.255"}},
        {"{\"type\": \"number\", \"multipleOf\": 2.5}",
         {"0", "2.5", "5", "7.50", "-12.5", "100", NULL, "1", "2", "2.25", "11.5", "6"}},
        {"{\"type\": \"integer\", \"multipleOf\": 60}",
         {"0", "60", "-120", "3600", NULL, "1", "20", "30", "100", "610"}},
        {"{\"type\": \"number\", \"multipleOf\": 1.5}",
         {"0", "1.5", "-3", "4.5", "4.500", "12", "13.50", NULL, "1", "2", "1.25", "4.05", "14"}},
        {"{\"type\": \"integer\", \"multipleOf\": 1.5}", {"0", "-3", "12", NULL, "1", "2", "4"}},
        {"{\"type\": \"number\", \"multipleOf\": 1e-8}",
         {"1", "0.00000001", "2.50000003", "2.500000030", NULL, "0.000000001", "1.000000005"}},
        {"{\"type\": \"integer\", \"multipleOf\": 7, \"minimum\": 8, \"maximum\": 1000}",
         {"14", "700", "994", NULL, "0", "7", "8", "13", "15", "1001", "-14"}},
        {"{\"type\": \"number\", \"multipleOf\": 0.037}",
         {"0.037", "-0.74", "37", "0.0370", NULL, "0.037037", "0.04", "38", "0.36"}},
        {"{\"type\": \"number\", \"multipleOf\": 3700}",
         {"0", "7400", "3700.0", NULL, "370", "3800"}},
        {"{\"type\": \"integer\", \"allOf\": [{\"multipleOf\": 13}, {\"multipleOf\": 11}]}",
         {"143", "-286", "0", NULL, "13", "11", "144"}},
        {"{\"type\": \"number\", \"not\": {\"multipleOf\": 0.3}}",
         {"0.1", "1", "0.31", "100", NULL, "0", "0.3", "0.30", "-0.9", "99"}},
        {"{\"type\": \"number\", \"not\": {\"minimum\": 5}}",
         {"4.99", "-5", NULL, "5", "5.0", "6"}},
        {"{\"type\": \"number\", \"not\": {\"type\": \"integer\"}}", {"1.5", NULL, "1", "2"}},
        {"{\"type\": \"number\", \"not\": {\"enum\": [1, 2.5]}}",
         {"1.5", "2", NULL, "1", "1.0", "2.50"}},
    };
    CHECK_ROWS(rows);
}

TEST(strings) {
    static const row rows[] = {
        {"{\"type\": \"string\", \"minLength\": 2, \"maxLength\": 3}",
         {"\"ab\"", "\"é字😀\"", "\"\\\\\\\"\"", "\"\\ud83d\\ude00a\"", NULL, "\"a\"", "\"abcd\"",
          "\"\\ud83d\\ude00\""}},
        {"{\"type\": \"string\", \"pattern\": \"^a+b?$\"}",
         {"\"aab\"", NULL, "\"b\"", "\"aabb\"", "\"xaab\""}},
        {"{\"type\": \"string\", \"pattern\": \"[0-9]\"}",
         {"\"a1b\"", "\"9\"", NULL, "\"ab\"", "\"\""}},
        {"{\"type\": \"string\", \"pattern\": \"^\\\"\\n$\"}", {"\"\\\"\\n\"", NULL, "\"\"\\n\""}},
        {"{\"type\": \"string\", \"not\": {\"pattern\": \"^[a-z]+$\"}}",
         {"\"\"", "\"a1\"", "\"A\"", NULL, "\"abc\""}},
        {"{\"type\": \"string\", \"pattern\": \"x\", \"maxLength\": 2, \"not\": {\"const\": "
         "\"xx\"}}",
         {"\"x\"", "\"ax\"", NULL, "\"xx\"", "\"aax\"", "\"a\""}},
        {"{\"enum\": [\"aa\", \"b\", \"ccc\"], \"minLength\": 2}",
         {"\"aa\"", "\"ccc\"", NULL, "\"b\""}},
    };
    CHECK_ROWS(rows);
}

TEST(patterns) {
#define PATTERN(p) "{\"type\": \"string\", \"pattern\": \"" p "\"}"
    static const row rows[] = {
        {PATTERN("^(?:ab|c){2,3}?$"), {"\"abc\"", "\"ccc\"", NULL, "\"ab\"", "\"cccc\""}},
        {PATTERN("^a|b$"), {"\"ax\"", "\"xb\"", NULL, "\"ba\""}},
        {PATTERN("(^|,)x($|,)"),
         {"\"x\"", "\"a,x\"", "\"x,b\"", "\"a,x,b\"", NULL, "\"ax\"", "\"xb\""}},
        {PATTERN("^(?!foo).*r$"), {"\"bar\"", "\"r\"", NULL, "\"foor\"", "\"ba\""}},
        {PATTERN("^(?=.*[0-9])(?=.*[a-z]).{3,5}$"),
         {"\"a1b\"", "\"11a11\"", NULL, "\"a1\"", "\"aaa\"", "\"111\""}},
        {PATTERN("^\\\\d\\\\D\\\\w\\\\W\\\\s\\\\S$"),
         {"\"1a_- x\"", NULL, "\"aa_- x\"", "\"1aé- x\" "}},
        {PATTERN("^[\\\\w.-]+@[^@\\\\s]$"), {"\"a.b-c@d\"", NULL, "\"@d\"", "\"a@@\""}},
        {PATTERN("^\\\\u00e9\\\\x41\\\\u{1F600}\\\\ud83d\\\\ude01$"),
         {"\"éA😀😁\"", NULL, "\"éA😀\""}},
        {PATTERN("^\\\\p{Lu}\\\\p{L}*$"), {"\"Äbc\"", NULL, "\"äbc\"", "\"A1\""}},
        {PATTERN("^a{2}b{1,}c{,2}$"), {"\"aabbc{,2}\"", NULL, "\"aab\"", "\"abc{,2}\""}},
        {PATTERN("^([]a]|b)*$"), {"\"bb\"", NULL, "\"a]\""}}, /* an empty class, then text */
        {PATTERN("^((a{2,3}){2}){1,2}$"),
         {"\"aaaa\"", "\"aaaaaa\"", "\"aaaaaaaaaaaa\"", NULL, "\"aaa\"", "\"aaaaaaa\""}},
        {PATTERN("^(a{3}){1,2}(b*)+(c{2,})*$"),
         {"\"aaa\"", "\"aaaaaabbcc\"", "\"aaaccccc\"", NULL, "\"aaaa\"", "\"aaac\""}},
        {PATTERN("^[^]$"), {"\"a\"", "\"\\n\"", NULL, "\"\""}},
        {PATTERN("^.$"), {"\"é\"", "\"\\t\"", NULL, "\"\\n\"", "\"\""}},
        {PATTERN("^\\\\/\\\\-$"), {"\"/-\"", "\"\\/-\"", NULL, "\"-/\""}},
        /* `^` holds after an empty match, and only there */
        {PATTERN("a?(?!^)b"), {"\"ab\"", "\"cb\"", NULL, "\"b\"", "\"ba\"", "\"a\""}},
        {PATTERN("a?^b"), {"\"b\"", "\"bc\"", NULL, "\"ab\"", "\"cb\""}},
        {PATTERN("a{0}(?!^)b"), {"\"ab\"", "\"bb\"", NULL, "\"b\"", "\"ba\""}},
        {PATTERN("^a*(?!^)b"), {"\"ab\"", "\"aab\"", NULL, "\"b\"", "\"bab\""}},
        {PATTERN("(\\\\S(\\\\W|\\\\w)){0,3}(?=a)(?!^\\\\d)a"),
         {"\"a\"", "\"1a\"", "\"xya\"", NULL, "\"1\"", "\"b\"", "\"\""}},
        {PATTERN("^a?(^|b)c$"), {"\"c\"", "\"bc\"", "\"abc\"", NULL, "\"ac\"", "\"xc\""}},
    };
    CHECK_ROWS(rows);
}

/* 59 letters \u00fc */
#define WIDE_10 "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc"
#define WIDE_59                                                                                    \
    WIDE_10 WIDE_10 WIDE_10 WIDE_10 WIDE_10 "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc"     \
                                            "\u00fc"

TEST(formats) {
#define FORMAT(f) "{\"type\": \"string\", \"format\": \"" f "\"}"
    static const row rows[] = {
        {FORMAT("date"),
         {"\"2024-02-29\"", "\"2023-12-31\"", NULL, "\"2023-02-29\"", "\"2024-13-01\"",
          "\"2024-4-1\""}},
        {FORMAT("date-time"),
         {"\"2024-01-02T03:04:05Z\"", "\"2024-01-02t03:04:05.678+09:30\"",
          "\"1998-12-31T23:59:60Z\"", NULL, "\"2024-01-02 03:04:05Z\"", "\"2024-01-02T03:04:05\"",
          "\"2024-01-02T24:00:00Z\""}},
        {FORMAT("time"), {"\"03:04:05Z\"", NULL, "\"03:04Z\"", "\"03:04:05\""}},
        {FORMAT("time"),
         {"\"01:29:60+01:30\"", "\"23:29:60.5+23:30\"", "\"15:59:60-08:00\"", "\"00:29:60-23:30\"",
          "\"00:59:60+01:00\"", "\"05:44:60+05:45\"", NULL, "\"22:59:60Z\"", "\"23:59:60+01:00\"",
          "\"01:29:60+01:45\"", "\"00:30:60+00:30\""}},
        {FORMAT("iri"),
         {"\"a:?\xf3\xb0\x80\x80\"", "\"a:\xf1\x80\x80\x80\"", NULL, "\"a:\xf3\xb0\x80\x80\"",
          "\"a:?#\xf3\xb0\x80\x80\""}},
        {FORMAT("duration"),
         {"\"P1Y2M3DT4H5M6S\"", "\"P4W\"", "\"PT1M\"", NULL, "\"P\"", "\"P1DT\"", "\"P1Y1D\""}},
        {FORMAT("email"),
         {"\"a.b+c@d-e.example\"", NULL, "\"a.@b.example\"", "\"a\"", "\"a@b\"", "\"a b@c.de\""}},
        {FORMAT("hostname"), {"\"a-b.example\"", NULL, "\"-a\"", "\"a..b\"", "\"a_b\"", "\"\""}},
        /* \u5b9e\u4f8b and others, which begin with a mark, have capitals, mix directions, or kinds of digits */
        {FORMAT("idn-hostname"),
         {"\"a-b.example\"",
          "\"\u5b9e\u4f8b.\u6d4b\u8bd5\"",
          "\"\u05d0\u05d11.com\"",
          "\"a\u3002b\"",
          "\"xn--ihqwcrb4cv8a8dqg056pqjye\"",
          "\"\u00fc-\u00df\"",
          NULL,
          "\"\"",
          "\"-a\"",
          "\"a-\"",
          "\"a..b\"",
          "\"a_b\"",
          "\"a\u00b7l\"",
          "\"\u0300a\"",
          "\"\u00dca\"",
          "\"\uff41\"",
          "\"aa--b\"",
          "\"\u5b9e\u4f8b.\"",
          "\"a\u05d0\"",
          "\"0a.\u05d0\"",
          "\"\u0628\u0660\u06f0\"",
          "\"" WIDE_59 "\"",
          "\"" WIDE_59 ".com\""}},
        {FORMAT("ipv4"), {"\"127.0.0.1\"", NULL, "\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""}},
        {FORMAT("ipv6"),
         {"\"::\"", "\"1:2:3:4:5:6:7:8\"", "\"::ffff:1.2.3.4\"", "\"1::8\"", NULL,
          "\"1:2:3:4:5:6:7\"", "\":::\"", "\"1::2::3\"", "\"12345::\""}},
        {FORMAT("uri"),
         {"\"https://u@a.example:80/b?c=%20#d\"", "\"urn:a:b\"", NULL, "\"/a\"", "\"a b:c\"",
          "\"http://a b\""}},
        {FORMAT("uri-reference"), {"\"/a\"", "\"\"", "\"#x\"", NULL, "\"a b\"", "\"%zz\""}},
        {FORMAT("uuid"),
         {"\"123e4567-e89b-12d3-a456-42665544000F\"", NULL,
          "\"123e4567e89b12d3a45642665544000f\""}},
        {FORMAT("json-pointer"), {"\"\"", "\"/a~1b/0\"", NULL, "\"a\"", "\"/~2\""}},
        {FORMAT("no-such-format"), {"\"anything\"", NULL, "1"}},
    };
    CHECK_ROWS(rows);
}

TEST(objects) {
    static const row rows[] = {
        {"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": true, "
         "\"c\": false}, "
         "\"required\": [\"b\"], \"additionalProperties\": false}",
         {"{\"b\": 1}", "{\"a\":1,\"b\":[]}", "{ \"b\": {}, \"a\": 2 }", NULL, "{}", "{\"a\": 1}",
          "{\"b\": 1, \"b\": 2}", "{\"b\": 1, \"c\": 1}", "{\"b\": 1, \"d\": 1}",
          "{\"a\": 1 \"b\": 1}", "{\"b\": 1,}"}},
        {"{\"type\": \"object\", \"properties\": {\"a\": {\"const\": 1}}, "
         "\"additionalProperties\": {\"type\": \"string\"}}",
         {"{}", "{\"a\": 1}", "{\"x\": \"\", \"a\": 1, \"ab\": \"\", \"\": \"\"}", NULL,
          "{\"a\": \"\"}", "{\"x\": 1}", "{\"\\u0061\": \"\"}"}},
        {"{\"type\": \"object\", \"patternProperties\": {\"^x\": {\"type\": \"integer\"}, \"y$\": "
         "{\"minimum\": 5}}, "
         "\"additionalProperties\": false}",
         {"{\"x\": 1, \"y\": 7, \"xy\": 5}", "{\"y\": \"no number\"}", NULL, "{\"xy\": 4}",
          "{\"x\": \"a\"}", "{\"a\": 1}", "{\"y\": 4}"}},
        {"{\"type\": \"object\", \"propertyNames\": {\"maxLength\": 2}, \"minProperties\": 1, "
         "\"maxProperties\": 2}",
         {"{\"ab\": 1}", "{\"a\": 1, \"b\": 2}", NULL, "{}", "{\"abc\": 1}",
          "{\"a\": 1, \"b\": 1, \"c\": 1}"}},
        {"{\"type\": \"object\", \"properties\": {\"a\": {}, \"b\": {}, \"c\": {}}, "
         "\"additionalProperties\": false, "
         "\"minProperties\": 2, \"maxProperties\": 2}",
         {"{\"c\": 1, \"a\": 1}", "{\"a\": 1, \"b\": 1}", NULL, "{\"a\": 1}",
          "{\"a\": 1, \"b\": 1, \"c\": 1}"}},
        {"{\"type\": \"object\", \"required\": [\"k\"], \"additionalProperties\": {\"type\": "
         "\"null\"}}",
         {"{\"k\": null}", "{\"a\": null, \"k\": null}", NULL, "{}", "{\"a\": null}",
          "{\"k\": 1}"}},
        {"{\"type\": \"object\", \"dependentRequired\": {\"a\": [\"b\"]}, \"properties\": {\"a\": "
         "{\"const\": 1}}}",
         {"{}", "{\"b\": 1}", "{\"b\": 1, \"a\": 1}", NULL, "{\"a\": 1}", "{\"a\": 2, \"b\": 1}"}},
        {"{\"type\": \"object\", \"dependencies\": {\"a\": {\"required\": [\"c\"]}}}",
         {"{\"c\": 1}", "{\"a\": 1, \"c\": 1}", NULL, "{\"a\": 1}"}},
    };
    CHECK_ROWS(rows);
}

TEST(arrays) {
    static const row rows[] = {
        {"{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"minItems\": 1, \"maxItems\": "
         "3}",
         {"[1]", "[1, 2, 3]", "[ 1,2 ]", "[\n    1,\n    2\n]", NULL, "[]", "[1, 2, 3, 4]",
          "[\"a\"]", "[1 2]"}},
        {"{\"type\": \"array\", \"prefixItems\": [{\"const\": 1}, {\"const\": 2}], \"items\": "
         "{\"const\": 3}}",
         {"[]", "[1]", "[1, 2, 3, 3]", NULL, "[2]", "[1, 3]", "[1, 2, 2]"}},
        {"{\"type\": \"array\", \"items\": [{\"const\": 1}], \"additionalItems\": false, "
         "\"minItems\": 1}",
         {"[1]", NULL, "[]", "[1, 1]"}},
        {"{\"type\": \"array\", \"contains\": {\"const\": 1}}",
         {"[1]", "[0, 1, 0]", NULL, "[]", "[0]"}},
        {"{\"type\": \"array\", \"items\": {\"enum\": [\"a\", \"b\", null]}, \"uniqueItems\": "
         "true}",
         {"[]", "[\"b\", null, \"a\"]", NULL, "[\"a\", \"a\"]", "[null, \"b\", null]"}},
        {"{\"type\": \"array\", \"not\": {\"items\": {\"type\": \"null\"}}}",
         {"[null, 1]", NULL, "[]", "[null]"}},
    };
    CHECK_ROWS(rows);
}

TEST(combinations) {
    static const row rows[] = {
        {"{\"allOf\": [{\"properties\": {\"a\": {\"type\": \"integer\"}}}, {\"properties\": "
         "{\"a\": {\"minimum\": 3}, "
         "\"b\": {}}, \"required\": [\"b\"]}], \"type\": \"object\"}",
         {"{\"a\": 3, \"b\": 1}", "{\"b\": 1}", NULL, "{\"a\": 2, \"b\": 1}", "{\"a\": 3}",
          "{\"a\": \"x\", \"b\": 1}"}},
        {"{\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\"}}, \"anyOf\": "
         "[{\"required\": [\"a\"]}, "
         "{\"required\": [\"b\"]}]}",
         {"{\"a\": 1}", "{\"n\": 1, \"b\": 1}", NULL, "{\"n\": 1}", "{\"n\": \"\", \"a\": 1}"}},
        {"{\"oneOf\": [{\"type\": \"object\", \"properties\": {\"k\": {\"const\": \"x\"}, \"v\": "
         "{\"type\": \"integer\"}}, "
         "\"required\": [\"k\"]}, {\"type\": \"object\", \"properties\": {\"k\": {\"const\": "
         "\"y\"}}, \"required\": "
         "[\"k\"]}]}",
         {"{\"k\": \"x\", \"v\": 1}", "{\"v\": \"\", \"k\": \"y\"}", NULL,
          "{\"k\": \"x\", \"v\": \"\"}", "{}"}},
        {"{\"oneOf\": [{\"type\": \"integer\"}, {\"minimum\": 3}]}",
         {"1", "3.5", "\"a\"", NULL, "3", "1.5"}},
        {"{\"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}], \"type\": \"object\"}",
         {"{\"a\": 1}", "{\"b\": 1, \"c\": 1}", NULL, "{}", "{\"a\": 1, \"b\": 1}"}},
        {"{\"type\": \"object\", \"if\": {\"properties\": {\"k\": {\"const\": 1}}, \"required\": "
         "[\"k\"]}, \"then\": "
         "{\"required\": [\"a\"]}, \"else\": {\"required\": [\"b\"]}}",
         {"{\"k\": 1, \"a\": 1}", "{\"k\": 2, \"b\": 1}", "{\"b\": 1}", NULL, "{\"k\": 1}",
          "{\"a\": 1}", "{\"k\": 1, \"b\": 1}"}},
        {"{\"not\": {\"type\": \"string\"}}", {"1", "{}", "null", NULL, "\"a\""}},
        {"{\"type\": \"object\", \"not\": {\"required\": [\"a\", \"b\"]}}",
         {"{}", "{\"a\": 1}", "{\"b\": 1, \"c\": 1}", NULL, "{\"a\": 1, \"b\": 1}"}},
        {"{\"type\": \"object\", \"not\": {\"properties\": {\"a\": {}}, \"additionalProperties\": "
         "false}}",
         {"{\"b\": 1}", "{\"a\": 1, \"b\": 1}", NULL, "{}", "{\"a\": 1}"}},
        {"{\"not\": {\"not\": {\"enum\": [{\"a\": 1}]}}}",
         {"{\"a\": 1}", NULL, "{}", "{\"a\": 2}"}},
    };
    CHECK_ROWS(rows);
}

TEST(references) {
    static const row rows[] = {
        {"{\"$ref\": \"#/$defs/n\", \"$defs\": {\"n\": {\"type\": \"array\", \"items\": {\"$ref\": "
         "\"#/$defs/n\"}}}}",
         {"[]", "[[], [[]]]", NULL, "[1]", "[[}"}},
        {"{\"definitions\": {\"a b/c~%\": {\"const\": 1}}, \"$ref\": "
         "\"#/definitions/a%20b~1c~0%25\"}",
         {"1", NULL, "2"}},
        {"{\"$id\": \"http://a.example/x/y.json\", \"$ref\": \"z.json#foo\", \"$defs\": {\"q\": "
         "{\"$id\": \"../x/z.json\", "
         "\"$defs\": {\"r\": {\"$anchor\": \"foo\", \"const\": 1}}}}}",
         {"1", NULL, "2"}},
        {"{\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"properties\": {\"a\": "
         "{\"$ref\": \"#/definitions/s\", "
         "\"maxLength\": 1}}, \"definitions\": {\"s\": {\"type\": \"string\"}}, \"type\": "
         "\"object\"}",
         {"{\"a\": \"xyz\"}", NULL, "{\"a\": 1}"}},
        {"{\"properties\": {\"a\": {\"$ref\": \"#/$defs/s\", \"maxLength\": 1}}, \"$defs\": "
         "{\"s\": {\"type\": "
         "\"string\"}}, \"type\": \"object\"}",
         {"{\"a\": \"x\"}", NULL, "{\"a\": 1}", "{\"a\": \"xyz\"}"}},
    };
    CHECK_ROWS(rows);
}

/* --- what is refused --------------------------------------------------------------------------- */

TEST(refused) {
    static const refusal rows[] = {
        {"[]", GGL_FORMAT, "s: #: a schema must be an object, true or false, not an array"},
        {"{\"properties\": {\"a~/\": {\"type\": \"text\"}}}", GGL_FORMAT,
         "s: #/properties/a~0~1/type: 'text' is not a type"},
        {"{\"minLength\": -1}", GGL_FORMAT, "s: #/minLength: must be a whole number"},
        {"{\"minimum\": \"1\"}", GGL_FORMAT, "s: #/minimum: must be a number"},
        {"{\"required\": [1]}", GGL_FORMAT, "s: #/required: must be an array of strings"},
        {"{\"pattern\": \"a)\"}", GGL_FORMAT, "s: #/pattern: 'a)': column 2: ')' closes no group"},
        {"{\"pattern\": \"(a\"}", GGL_FORMAT, "column 1: the group is not closed"},
        {"{\"pattern\": \"a**\"}", GGL_FORMAT, "column 3: '*' has nothing to repeat"},
        {"{\"pattern\": \"[z-a]\"}", GGL_FORMAT, "column 2: the range is in the wrong order"},
        {"{\"pattern\": \"a{3,2}\"}", GGL_FORMAT, "wrong order"},
        {"{\"pattern\": \"((ab{99}){999}){99}\"}", GGL_LIMIT, "column 16: nested counts multiply"},
        {"{\"pattern\": \"(a)\\\\1\"}", GGL_UNSUPPORTED, "column 4: back references"},
        {"{\"pattern\": \"\\\\bword\"}", GGL_UNSUPPORTED, "column 1: word boundaries"},
        {"{\"pattern\": \"(?<=a)b\"}", GGL_UNSUPPORTED, "column 1: lookbehind"},
        {"{\"pattern\": \"(a$)*b\"}", GGL_UNSUPPORTED,
         "an anchor or lookahead in a repeated group"},
        {"{\"pattern\": \"\\\\p{Script=Greek}\"}", GGL_UNSUPPORTED,
         "\\p{Script=Greek} is not supported"},
        {"{\"format\": \"regex\"}", GGL_UNSUPPORTED, "s: #/format: 'regex' is not supported"},
        {"{\"uniqueItems\": true}", GGL_UNSUPPORTED, "s: #/uniqueItems: "},
        {"{\"$dynamicRef\": \"#a\"}", GGL_FORMAT, "s: #/$dynamicRef: there is no '#a' in the"},
        {"{\"$ref\": \"#a\", \"$defs\": {\"b\": {\"$anchor\": \"a\"}, \"c\": {\"$anchor\": "
         "\"a\"}}}",
         GGL_FORMAT, "s: #: two schemas have the anchor 'a'"},
        {"{\"$ref\": \"x\", \"$defs\": {\"b\": {\"$id\": \"x\", \"$dynamicRef\": \"#a\", "
         "\"$defs\": "
         "{\"c\": {\"$dynamicAnchor\": \"a\"}}}, \"d\": {\"$id\": \"y\", \"$dynamicAnchor\": "
         "\"a\"}}}",
         GGL_UNSUPPORTED, "s: #/$defs/b/$dynamicRef: where it leads depends on"},
        {"{\"minProperties\": 3}", GGL_UNSUPPORTED, "s: #/minProperties: "},
        {"{\"not\": {\"additionalProperties\": {\"type\": \"string\"}}}", GGL_UNSUPPORTED,
         "s: #/not/additionalProperties: its negation"},
        {"{\"multipleOf\": 2001}", GGL_UNSUPPORTED,
         "s: #/multipleOf: digits that make a number above 2000 are not supported"},
        {"{\"multipleOf\": 0.123456789}", GGL_UNSUPPORTED, "s: #/multipleOf: digits that make"},
        {"{\"$ref\": \"#/a\"}", GGL_FORMAT, "s: #/$ref: there is no '#/a' in the document"},
        {"{\"$ref\": \"#\"}", GGL_LIMIT, "$ref leads back to itself"},
    };
    CHECK_REFUSALS(rows);
}

/* What looks like a schema in a value, or in an unknown keyword, has no identifiers. */
TEST(identifiers_in_data) {
    static const char *const word[] = {"enum", "const", "default", "examples", "foo"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "{\"$defs\": {\"e\": {\"%s\": [{\"$anchor\": \"a\", \"$id\": \"x\", \"type\": "
                 "\"null\"}]}, "
                 "\"r\": {\"$anchor\": \"a\", \"type\": \"string\"}, "
                 "\"s\": {\"$id\": \"x\", \"type\": \"boolean\"}}, "
                 "\"anyOf\": [{\"$ref\": \"#a\"}, {\"$ref\": \"x\"}]}",
                 word[i]);
        llm_grammar *g = compile(text);
        CHECK(g && fits(g, "\"x\"") && fits(g, "true") && !fits(g, "null"));
        llm_grammar_free(g);
    }
}

/* A pointer may lead into an unknown keyword; the reference there means what it means around it. */
TEST(references_in_data) {
    llm_grammar *g =
        compile("{\"$ref\": \"x#/foo\", \"$defs\": {\"b\": {\"$id\": \"x\", \"foo\": "
                "{\"$ref\": \"#a\"}, \"$defs\": {\"c\": {\"$anchor\": \"a\", \"const\": 1}}}}}");
    CHECK(g && fits(g, "1") && !fits(g, "2"));
    llm_grammar_free(g);
}

/* A dynamic reference leads to the document's anchor, if it has one; otherwise to the only one there is. */
TEST(dynamic_references) {
    static const char tree[] =
        "\"$defs\": {\"tree\": {\"$id\": \"tree\", \"$dynamicAnchor\": \"node\", \"type\": "
        "\"object\", "
        "\"properties\": {\"k\": {\"type\": \"array\", \"items\": {\"$dynamicRef\": \"#node\"}}}}}";
    char text[600];
    snprintf(text, sizeof text, "{\"$ref\": \"tree\", %s}", tree);
    llm_grammar *g = compile(text);
    CHECK(g && fits(g, "{\"k\": [{\"x\": 1}]}") && !fits(g, "{\"k\": [1]}"));
    llm_grammar_free(g);
    snprintf(text, sizeof text,
             "{\"$dynamicAnchor\": \"node\", \"$ref\": \"tree\", \"required\": [\"x\"], %s}", tree);
    g = compile(text);
    CHECK(g && fits(g, "{\"k\": [{\"x\": 1}], \"x\": 2}"));
    CHECK(g && !fits(g, "{\"k\": [{\"y\": 1}], \"x\": 2}"));
    llm_grammar_free(g);
}

/* No value is valid: the part that is the reason is named. */
TEST(empty) {
    static const refusal rows[] = {
        {"false", GGL_FORMAT, "s: #: no JSON value is valid"},
        {"{\"enum\": []}", GGL_FORMAT, "s: #: no JSON value is valid"},
        {"{\"not\": {}}", GGL_FORMAT, "s: #: no JSON value is valid"},
        {"{\"type\": \"integer\", \"minimum\": 3, \"maximum\": 2, \"required\": [\"a\"], "
         "\"properties\": {\"a\": false}}",
         GGL_FORMAT, "s: #: no JSON value is valid"},
        {"{\"type\": \"object\", \"required\": [\"c\", \"a\"], \"properties\": {\"b\": false, "
         "\"c\": "
         "true, \"a\": {\"type\": \"array\", \"minItems\": 2, \"items\": {\"allOf\": [true, "
         "{\"type\": "
         "[]}]}}}}",
         GGL_FORMAT, "s: #/properties/a/items/allOf/1: no JSON value is valid"},
        {"{\"type\": \"array\", \"minItems\": 1, \"prefixItems\": [{\"$ref\": \"#/$defs/d\"}, "
         "false], "
         "\"$defs\": {\"d\": {\"const\": 1, \"type\": \"null\"}}}",
         GGL_FORMAT, "s: #/$defs/d: no JSON value is valid"},
        {"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}, \"required\": "
         "[\"a\", \"b\"], \"additionalProperties\": false}",
         GGL_FORMAT,
         "s: #: no JSON value is valid under this schema: 'b' is required, but not one of"},
        {"{\"type\": \"object\", \"properties\": {\"x\": {\"$ref\": \"#\"}}, \"required\": "
         "[\"x\"]}",
         GGL_FORMAT, "s: #/properties/x: no JSON value is valid"},
    };
    CHECK_REFUSALS(rows);
}

TEST(any_json) {
    ggl_error err = {0};
    llm_grammar *g;
    if (!CHECK_OK(llm_grammar_from_schema(&g, "true", 4, "JSON", &err), &err))
        return;
    CHECK(fits(g, "{\"a\": [1, -2.5e10, \"\\u00e9\\n\", null, true, {}]}"));
    CHECK(fits(g, "[\r\n\t{}\r\n]"));
    CHECK(!fits(g, "{\"a\": \"\n\"}"));
    CHECK(!fits(g, "[\"\\ud800\"]"));
    CHECK(!fits(g, "[1] "));
    CHECK(!fits(g, "{\"a\": 1,}"));
    llm_grammar_free(g);
}

/* Intersections of patterns that have very many states are given up. */
TEST(schemas_keep_to_their_steps) {
    static const char schema[] =
        "{\"patternProperties\": {\"^.{0,8}a.*c\": {\"type\": \"null\"}, \"^.{0,9}a.*c\": "
        "{\"type\": \"null\"}, \"^.{0,10}a.*c\": {}, \"^.{0,11}a.*c\": {}, \"^.{0,12}a.*c\": {}}}";
    llm_schema_params p = {.size = sizeof p, .max_steps = 2000};
    ggl_error err = {0};
    llm_grammar *g;
    CHECK_INT(llm_grammar_from_schema_with(&g, schema, sizeof schema - 1, "s", &p, &err),
              GGL_LIMIT);
    CHECK(!g);
    CHECK_HAS(err.msg, "takes more than 2000 steps; make it simpler");
    p.max_steps = 1 << 24;
    CHECK_OK(llm_grammar_from_schema_with(&g, schema, sizeof schema - 1, "s", &p, &err), &err);
    llm_grammar_free(g);
}

/* Compact white space, for generated texts: none but a space after ':' and ','. */
TEST(compact) {
    static const char schema[] = "{\"items\": {\"properties\": {\"a\": {\"const\": [1, 2]}}}}";
    static const row rows[] = {
        {schema,
         {"[{\"a\": [1, 2], \"b\": {}}, \" \\n \", []]", "[{\"a\":[1,2],\"b\":\"c\"}]", "{}",
          "{\"a\": \"  \"}", NULL, "[ 1]", "[1 ]", "[ ]", "{ }", "[1,  2]", "[1,\n2]", "[1 ,2]",
          "{ \"a\": 1}", "{\"a\" : 1}", "{\"a\":\n1}", "{\"a\": 1 }", "[{\"a\": [1,\t2]}]"}}};
    ggl_error err = {0};
    llm_grammar *g = NULL;
    const llm_schema_params p = {.size = sizeof p, .compact = true};
    if (!CHECK_OK(llm_grammar_from_schema_with(&g, schema, sizeof schema - 1, "s", &p, &err), &err))
        return;
    check_texts(g, &rows[0]);
    llm_grammar_free(g);
}

/* Time and memory must not explode with the size of what a schema says. */
TEST(large) {
    char *s = malloc(1 << 20);
    REQUIRE(s);
    size_t n = (size_t)sprintf(s, "{\"type\": \"object\", \"properties\": {");
    for (int i = 0; i < 300; i++)
        n += (size_t)sprintf(s + n, "%s\"p%d\": {\"type\": \"integer\"}", i ? ", " : "", i);
    sprintf(s + n, "}, \"additionalProperties\": false, \"required\": [\"p299\"]}");
    llm_grammar *g = compile(s);
    CHECK(g && fits(g, "{\"p299\": 1, \"p0\": 2, \"p150\": 3}"));
    CHECK(g && !fits(g, "{\"p0\": 2, \"p150\": 3}"));
    CHECK(g && !fits(g, "{\"p299\": 1, \"p0\": 2, \"p0\": 3}"));
    llm_grammar_free(g);
    g = compile("{\"type\": \"string\", \"minLength\": 1000, \"maxLength\": 2147483647}");
    CHECK(g && !fits(g, "\"short\""));
    llm_grammar_free(g);
    free(s);
}

/* Writes FIRST, then BEFORE i AFTER for each i, with commas, and LAST. Returns the end. */
static char *write_list(char *at, const char *first, const char *before, const char *after, int n,
                        const char *last) {
    at += sprintf(at, "%s", first);
    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s%s%d%s", i ? ", " : "", before, i, after);
    return at + sprintf(at, "%s", last);
}

/* The steps to compile lists of n schemas, values and names. */
static uint64_t steps_for(int n) {
    char *s = malloc((size_t)n * 250 + 800), *at = s;
    if (!CHECK(s))
        return 0;
    at = write_list(at, "{\"properties\": {\"a\": {\"anyOf\": [", "{\"required\": [\"x", "\"]}", n,
                    "]}, ");
    at = write_list(at, "\"b\": {\"enum\": [", "{\"k", "\": 1}", n, "]}, ");
    at = write_list(at, "\"c\": {\"not\": {\"required\": [", "\"y", "\"", n, "]}}, ");
    at =
        write_list(at, "\"e\": {\"properties\": {", "\"p", "\": {\"type\": \"object\"}", n, "}}, ");
    at = write_list(at, "\"f\": {\"unevaluatedProperties\": false, \"properties\": {", "\"u",
                    "\": {}", n,
                    "}, \"allOf\": [{\"properties\": {\"u1\": {\"type\": \"null\"}}}]}, ");
    at = write_list(at, "\"g\": {\"type\": \"array\", \"contains\": {\"enum\": [", "", "", n,
                    "]}, \"maxContains\": 2}, ");
    at = write_list(at, "\"d\": {\"type\": \"object\", \"required\": [", "\"z", "\"", n, "]}}}");
    ggl_n_steps = 0;
    llm_grammar_free(compile(s));
    free(s);
    return ggl_n_steps;
}

TEST(time_of_long_lists) {
    test_linear("schema", steps_for(200), steps_for(800), 4);
}

static llm_grammar *compile_cheaply(const char *text, size_t n) {
    const llm_schema_params p = {
        .size = sizeof p, .compact = true, .max_steps = 1 << 21, .max_bytes = 64 << 20};
    ggl_error err = {0};
    llm_grammar *g;
    CHECK_OK(llm_grammar_from_schema_with(&g, text, n, "s", &p, &err), &err);
    return g;
}

/* Thousands of constants, characters and names take few steps and bytes. */
LONG_TEST(long_lists_are_cheap) {
    enum { MANY = 16000 };
    static const char *const word[] = {"anyOf", "oneOf"};
    char *s = malloc(1 << 20), *at = s;
    REQUIRE(s);
    for (int k = 0; k < 2; k++) {
        at = s + sprintf(s, "{\"%s\": [", word[k]);
        for (int i = 0; i < MANY; i++)
            at += sprintf(at, "{\"const\": %d}, ", i);
        at += sprintf(at - 2, "]}") - 2;
        llm_grammar *g = compile_cheaply(s, (size_t)(at - s));
        CHECK(g && fits(g, "15999") && fits(g, "0") && !fits(g, "16000") && !fits(g, "\"1\""));
        llm_grammar_free(g);
    }
    at = s + sprintf(s, "{\"type\": \"string\", \"pattern\": \"^[");
    for (int i = 0; i < MANY / 2; i++)
        at += sprintf(at, "\\u%04x", 0x1000 + 2 * i);
    at += sprintf(at, "]$\"}");
    llm_grammar *g = compile_cheaply(s, (size_t)(at - s));
    CHECK(g && fits(g, "\"\xe1\x80\x80\"") && !fits(g, "\"\xe1\x80\x81\""));
    llm_grammar_free(g);
    at = write_list(s, "{\"type\": \"object\", \"required\": [", "\"k", "\"", 4000, "]}");
    g = compile_cheaply(s, (size_t)(at - s));
    CHECK(g && !fits(g, "{\"k1\": 1}"));
    llm_grammar_free(g);
    free(s);
}

/* After a limit was reached, no more work is done to find out whether some part of the schema has no values. */
TEST(a_reason_is_found_within_the_limit) {
    static const char text[] =
        "{\"type\": \"string\", \"allOf\": [{\"pattern\": \"^(a|b)*a(a|b){14}$\"}, "
        "{\"pattern\": \"^(a|b)*b(a|b){15}$\"}]}";
    const llm_schema_params p = {.size = sizeof p, .max_steps = 100000};
    ggl_error err = {0};
    llm_grammar *g;
    ggl_n_steps = 0;
    CHECK_INT(llm_grammar_from_schema_with(&g, text, sizeof text - 1, "s", &p, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "takes more than 100000 steps");
    CHECK_MSG(ggl_n_steps > 50000 && ggl_n_steps < 150000, "%" PRIu64 " steps", ggl_n_steps);
}

/* What would take long is refused before it has. */
TEST(entangled_lists_are_refused) {
    enum { MANY = 16000 };
    const llm_schema_params p = {.size = sizeof p, .max_steps = 1 << 18, .max_bytes = 64 << 20};
    ggl_error err = {0};
    llm_grammar *g;
    char *s = malloc(1 << 20), *at = s;
    REQUIRE(s);
    at = s + sprintf(s, "{\"allOf\": [");
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "{\"type\": \"integer\", \"minimum\": %d}, ", i);
    at += sprintf(at - 2, "]}") - 2;
    CHECK_INT(llm_grammar_from_schema_with(&g, s, (size_t)(at - s), "s", &p, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "takes more than 262144 steps; make it simpler");
    free(s);
}

/* 2^12 cases with 2000 names each. */
LONG_TEST(cases_that_are_too_large) {
    char *s = malloc(1 << 17), *at = s;
    ggl_error err = {0};
    llm_grammar *g;
    REQUIRE(s);
    at = write_list(at, "{\"type\": \"object\", \"required\": [", "\"k", "\"", 2000, "]}");
    g = compile(s);
    CHECK(g && !fits(g, "{\"k1\": 1}"));
    llm_grammar_free(g);
    at = write_list(at - 1, ", \"dependentRequired\": {", "\"a", "\": [\"b\"]", 12, "}}");
    CHECK_INT(llm_grammar_from_schema(&g, s, (size_t)(at - s), "s", &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "the schema takes more than 512 MiB of memory");
    free(s);
}

/* Every allocation may fail: that is an error, and never another grammar. */
static bool compile_much(void *arg) {
    static const char schema[] =
        "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \"pattern\": "
        "\"^(?!x)[\\\\w\u00e9]{2}$\", \"format\": \"date\"}, \"b\": {\"enum\": [1, [2], {\"c\": "
        "null}]}, "
        "\"d\": {\"$ref\": \"#/$defs/n\"}}, \"required\": [\"b\"], \"patternProperties\": {\"^z\": "
        "{\"minimum\": 0.5, \"multipleOf\": 0.25}}, \"oneOf\": [{\"required\": [\"a\"]}, "
        "{\"required\": "
        "[\"d\"]}], \"$defs\": {\"n\": {\"$anchor\": \"m\", \"prefixItems\": [{\"$ref\": \"#m\"}], "
        "\"items\": {\"not\": {\"const\": \"q\"}}, \"uniqueItems\": false}}}";
    llm_grammar *g;
    (void)arg;
    const bool ok = llm_grammar_from_schema(&g, schema, sizeof schema - 1, "s", NULL) == GGL_OK;
    llm_grammar_free(g);
    return ok;
}

LONG_TEST(every_allocation_may_fail) {
    CHECK(compile_much(NULL));
    CHECK(alloc_fail_each(compile_much, NULL) > 50);
}
