/* JSON schemas: unevaluatedProperties and unevaluatedItems. */
#include "schema_rows.h"

#define OBJECT "{\"type\": \"object\", \"unevaluatedProperties\": false"
#define ARRAY  "{\"type\": \"array\", \"unevaluatedItems\": false"

TEST(properties) {
    static const row rows[] = {
        {"{\"type\": \"object\", \"unevaluatedProperties\": true}",
         {"{}", "{\"a\": 1}", NULL, "1"}},
        {"{\"type\": \"object\", \"unevaluatedProperties\": {\"type\": \"integer\"}, "
         "\"properties\": {\"a\": {}}}",
         {"{}", "{\"a\": \"\", \"b\": 1}", NULL, "{\"b\": \"\"}"}},
        {OBJECT
         ", \"properties\": {\"a\": {}}, \"patternProperties\": {\"^x\": {\"type\": \"null\"}}}",
         {"{}", "{\"a\": 1, \"xy\": null}", NULL, "{\"b\": 1}", "{\"xy\": 1}", "{\"ax\": null}"}},
        {OBJECT ", \"additionalProperties\": {\"type\": \"null\"}}",
         {"{\"a\": null}", NULL, "{\"a\": 1}"}},
        {OBJECT ", \"required\": [\"a\"], \"properties\": {\"b\": {}}, \"minProperties\": 0, "
                "\"anyOf\": [{\"properties\": {\"a\": {}}}, "
                "{\"properties\": {\"c\": {}}}]}",
         {"{\"a\": 1}", "{\"a\": 1, \"b\": 1}", "{\"c\": 1, \"a\": 1}", NULL, "{\"c\": 1}",
          "{\"a\": 1, \"d\": 1}"}},
        /* what stands in schemas beside it is seen, and in these the other way round it is not */
        {OBJECT ", \"allOf\": [{\"properties\": {\"a\": {}}}, {\"$ref\": \"#/$defs/b\"}], "
                "\"$defs\": {\"b\": {\"properties\": {\"b\": {}}}}}",
         {"{\"a\": 1, \"b\": 1}", NULL, "{\"c\": 1}"}},
        {"{\"type\": \"object\", \"properties\": {\"a\": {}}, \"allOf\": "
         "[{\"unevaluatedProperties\": false}]}",
         {"{}", NULL, "{\"a\": 1}"}},
        {"{\"type\": \"object\", \"allOf\": [{\"properties\": {\"a\": {}}}, {\"properties\": "
         "{\"b\": {}}, \"unevaluatedProperties\": false}]}",
         {"{}", "{\"b\": 1}", NULL, "{\"a\": 1}", "{\"a\": 1, \"b\": 1}"}},
        {OBJECT ", \"allOf\": [{\"unevaluatedProperties\": {\"type\": \"null\"}}]}",
         {"{}", "{\"a\": null}", NULL, "{\"a\": 1}"}},
        {OBJECT ", \"not\": {\"not\": {\"properties\": {\"a\": {}}}}}", {"{}", NULL, "{\"a\": 1}"}},
        {OBJECT ", \"properties\": {\"a\": {\"type\": \"object\", \"unevaluatedProperties\": "
                "{\"$ref\": \"#\"}}}}",
         {"{}", "{\"a\": {\"b\": {\"a\": {}}}}", NULL, "{\"b\": {}}",
          "{\"a\": {\"a\": {\"b\": {}}}}"}},
    };
    CHECK_ROWS(rows);
}

/* What is evaluated depends on which schemas hold. */
TEST(alternatives) {
    static const row rows[] = {
        {OBJECT ", \"anyOf\": [{\"properties\": {\"a\": {\"type\": \"null\"}}}, {\"properties\": "
                "{\"b\": {\"type\": \"null\"}}}]}",
         {"{}", "{\"a\": null}", "{\"b\": null}", "{\"a\": null, \"b\": null}", NULL, "{\"a\": 1}",
          "{\"a\": null, \"b\": 1}", "{\"c\": null}"}},
        {OBJECT ", \"anyOf\": [true, {\"properties\": {\"a\": {}}}]}",
         {"{}", "{\"a\": 1}", NULL, "{\"b\": 1}"}},
        {OBJECT ", \"oneOf\": [{\"properties\": {\"a\": {}}, \"required\": [\"a\"]}, "
                "{\"properties\": {\"b\": {}}, \"required\": [\"b\"]}]}",
         {"{\"a\": 1}", "{\"b\": 1}", NULL, "{}", "{\"a\": 1, \"b\": 1}", "{\"a\": 1, \"c\": 1}"}},
        {OBJECT ", \"if\": {\"properties\": {\"k\": {\"const\": 1}}, \"required\": [\"k\"]}, "
                "\"then\": {\"properties\": {\"a\": {}}}, \"else\": "
                "{\"properties\": {\"b\": {}}}}",
         {"{\"k\": 1}", "{\"k\": 1, \"a\": 1}", "{\"b\": 1}", "{}", NULL, "{\"k\": 1, \"b\": 1}",
          "{\"k\": 2}", "{\"a\": 1}"}},
        {OBJECT ", \"if\": {\"patternProperties\": {\"^a\": {\"type\": \"null\"}}}}",
         {"{}", "{\"a\": null, \"ab\": null}", NULL, "{\"a\": 1}", "{\"b\": null}"}},
        {OBJECT ", \"properties\": {\"a\": {}}, \"dependentSchemas\": {\"a\": {\"properties\": "
                "{\"b\": {}}}}}",
         {"{}", "{\"a\": 1}", "{\"b\": 1, \"a\": 1}", NULL, "{\"b\": 1}", "{\"a\": 1, \"c\": 1}"}},
        {OBJECT ", \"patternProperties\": {\"^a\": {}}, \"anyOf\": [{\"patternProperties\": "
                "{\"b$\": {\"type\": \"null\"}}}, {\"patternProperties\": "
                "{\"^a\": {\"type\": \"integer\"}}}]}",
         {"{\"a\": \"\"}", "{\"b\": null}", "{\"a\": 1}", NULL, "{\"b\": 1}", "{\"c\": 1}"}},
        {OBJECT ", \"enum\": [{\"a\": 1}, {\"b\": 1}], \"properties\": {\"a\": {}}}",
         {"{\"a\": 1}", NULL, "{\"b\": 1}"}},
    };
    CHECK_ROWS(rows);
}

TEST(items) {
    static const row rows[] = {
        {ARRAY "}", {"[]", NULL, "[1]"}},
        {ARRAY ", \"prefixItems\": [{\"const\": 1}]}", {"[]", "[1]", NULL, "[2]", "[1, 1]"}},
        {ARRAY ", \"items\": {\"const\": 1}}", {"[1, 1]", NULL, "[2]"}},
        {ARRAY ", \"allOf\": [{\"prefixItems\": [true]}, {\"prefixItems\": [true, {\"type\": "
               "\"null\"}]}]}",
         {"[1]", "[1, null]", NULL, "[1, 1]", "[1, null, null]"}},
        {ARRAY ", \"anyOf\": [{\"prefixItems\": [{\"const\": 1}]}, {\"prefixItems\": [true, "
               "{\"const\": 2}]}]}",
         {"[]", "[1]", "[0, 2]", "[1, 2]", NULL, "[1, 3]", "[0, 3]", "[1, 2, 3]"}},
        {"{\"type\": \"array\", \"unevaluatedItems\": {\"type\": \"null\"}, \"prefixItems\": "
         "[{\"const\": 1}], \"contains\": {\"type\": \"string\"}}",
         {"[1, \"a\"]", "[1, null, \"a\", null]", NULL, "[1, null]", "[1, 2, \"a\"]",
          "[\"a\", \"a\"]"}},
        {ARRAY ", \"allOf\": [{\"contains\": {\"multipleOf\": 2}}, {\"contains\": {\"multipleOf\": "
               "3}, \"minContains\": 0}]}",
         {"[2]", "[2, 3]", "[6, 3]", NULL, "[]", "[3]", "[2, 5]"}},
        {"{\"$schema\": \"https://json-schema.org/draft/2019-09/schema\", \"type\": \"array\", "
         "\"unevaluatedItems\": false, \"items\": [true], "
         "\"contains\": {\"const\": 1}}",
         {"[1]", NULL, "[]", "[1, 1]"}},
        {ARRAY ", \"if\": {\"prefixItems\": [{\"const\": 1}]}, \"then\": {\"prefixItems\": [true, "
               "true]}}",
         {"[]", "[1]", "[1, 2]", NULL, "[2]", "[1, 2, 3]"}},
    };
    CHECK_ROWS(rows);
}

/* Negations, where what is evaluated does not depend on the value. */
TEST(negations) {
    static const row rows[] = {
        {"{\"type\": \"object\", \"not\": {\"properties\": {\"a\": {}}, \"unevaluatedProperties\": "
         "false}}",
         {"{\"b\": 1}", "{\"a\": 1, \"b\": 1}", NULL, "{}", "{\"a\": 1}"}},
        {"{\"type\": \"object\", \"not\": {\"required\": [\"a\"], \"allOf\": [{\"properties\": "
         "{\"a\": {}}}], \"unevaluatedProperties\": false}}",
         {"{}", "{\"b\": 1}", "{\"a\": 1, \"b\": 1}", NULL, "{\"a\": 1}"}},
        {"{\"oneOf\": [{\"type\": \"object\", \"properties\": {\"a\": {}, \"b\": {}}, "
         "\"unevaluatedProperties\": false}, {\"type\": \"object\", "
         "\"properties\": {\"a\": {}, \"c\": {}}, \"unevaluatedProperties\": false}]}",
         {"{\"b\": 1}", "{\"a\": 1, \"c\": 1}", NULL, "{}", "{\"a\": 1}", "{\"b\": 1, \"c\": 1}",
          "{\"d\": 1}"}},
        {"{\"type\": \"array\", \"not\": {\"prefixItems\": [true], \"unevaluatedItems\": "
         "{\"type\": \"null\"}}}",
         {"[1, 2]", "[1, null, 2]", NULL, "[]", "[1]", "[1, null]"}},
        {"{\"type\": \"array\", \"not\": {\"contains\": {\"const\": 1}, \"unevaluatedItems\": "
         "{\"const\": 2}}}",
         {"[]", "[2]", "[1, 3]", NULL, "[1]", "[2, 1]"}},
    };
    CHECK_ROWS(rows);
}

TEST(refused) {
    static const refusal rows[] = {
        {"{\"unevaluatedProperties\": 1}", GGL_FORMAT,
         "s: #/unevaluatedProperties: a schema must be an object"},
        {"{\"unevaluatedItems\": []}", GGL_FORMAT,
         "s: #/unevaluatedItems: a schema must be an object"},
        {"{\"not\": {\"anyOf\": [true, {\"properties\": {\"a\": {}}}], \"unevaluatedProperties\": "
         "false}}",
         GGL_UNSUPPORTED,
         "s: #/not/unevaluatedProperties: its negation (by not, oneOf or if) is not supported "
         "where"},
        {"{\"not\": {\"unevaluatedProperties\": {\"type\": \"null\"}}}", GGL_UNSUPPORTED,
         "s: #/not/unevaluatedProperties: its negation (by not, oneOf or if) is only supported if "
         "it is false"},
        {"{\"not\": {\"patternProperties\": {\"^a\": true}, \"unevaluatedProperties\": false}}",
         GGL_UNSUPPORTED, "s: #/not/patternProperties: its negation"},
        {"{\"type\": \"object\", \"required\": [\"a\"], \"unevaluatedProperties\": false}",
         GGL_FORMAT, "s: #: no JSON value is valid"},
    };
    CHECK_REFUSALS(rows);
}

/* Each subset of n schemas evaluates something else. */
static char *subsets(char *out, int n) {
    char *at =
        out + sprintf(out, "{\"type\": \"object\", \"unevaluatedProperties\": false, \"anyOf\": [");
    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s{\"properties\": {\"k%d\": {}}, \"required\": [\"r%d\"]}",
                      i ? ", " : "", i, i);
    at += sprintf(at, "], \"properties\": {");
    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s\"r%d\": {}", i ? ", " : "", i);
    sprintf(at, "}}");
    return out;
}

TEST(subsets_are_limited) {
    const llm_schema_params p = {
        .size = sizeof p, .compact = true, .max_steps = 1 << 21, .max_bytes = 64 << 20};
    char text[4000];
    ggl_error err = {0};
    llm_grammar *g;
    CHECK_OK(llm_grammar_from_schema_with(&g, text, strlen(subsets(text, 5)), "s", &p, &err), &err);
    CHECK(g && fits(g, "{\"r1\": 1, \"r3\": 1, \"k1\": 1, \"k3\": 1}") &&
          !fits(g, "{\"r1\": 1, \"k1\": 1, \"k3\": 1}"));
    llm_grammar_free(g);
    CHECK_INT(llm_grammar_from_schema_with(&g, text, strlen(subsets(text, 24)), "s", &p, &err),
              GGL_LIMIT);
    CHECK_HAS(err.msg, "the schema takes more than ");
}
