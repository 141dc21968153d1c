/* JSON schemas of arrays: how many items fit, and items that differ. */
#include "alloc_fail.h"
#include "schema_rows.h"

#define ONES "{\"type\": \"array\", \"contains\": {\"const\": 1}"

TEST(counts) {
    static const row rows[] = {
        {ONES ", \"minContains\": 2}",
         {"[1, 1]", "[0, 1, \"a\", 1]", "[1, 1, 1]", NULL, "[]", "[1]", "[1, 2, []]"}},
        {ONES ", \"maxContains\": 2}",
         {"[1]", "[1, 0, 1, 2]", NULL, "[]", "[0]", "[1, 1, 1]", "[0, 1, 1, 2, 1]"}},
        {ONES ", \"minContains\": 2, \"maxContains\": 2}", {"[1, 0, 1]", NULL, "[1]", "[1, 1, 1]"}},
        {ONES ", \"minContains\": 0, \"maxContains\": 1}",
         {"[]", "[0, 0]", "[0, 1]", NULL, "[1, 1]", "[1, 0, 1]"}},
        {ONES ", \"minContains\": 0, \"maxContains\": 0}", {"[]", "[0]", NULL, "[1]", "[0, 1]"}},
        {ONES ", \"minContains\": 0}", {"[]", "[0]", NULL, "{}"}},
        {ONES ", \"minContains\": 2.0, \"minItems\": 3, \"maxItems\": 4}",
         {"[1, 1, 0]", "[0, 0, 1, 1]", "[1, 1, 1, 1]", NULL, "[1, 1]", "[1, 0, 0]",
          "[1, 1, 0, 0, 0]", "[0, 0, 0, 1]"}},
        {ONES ", \"prefixItems\": [{\"type\": \"integer\"}, {\"type\": \"null\"}], \"items\": "
              "{\"maximum\": 1}}",
         {"[1]", "[1, null]", "[0, null, 1]", "[0, null, 0, 1, \"a\"]", NULL, "[]", "[0]",
          "[0, null, 0]", "[0, null, 2, 1]", "[0, 1]"}},
        {ONES ", \"items\": {\"type\": \"integer\"}, \"allOf\": [{\"contains\": {\"minimum\": 5}}, "
              "{\"contains\": {\"const\": 9}, \"maxContains\": 1}]}",
         {"[1, 9]", "[9, 1, 5, 1]", NULL, "[1, 5]", "[9]", "[9, 1, 9]", "[]", "[1, 9, \"a\"]"}},
        {"{\"type\": \"array\", \"not\": {\"contains\": {\"const\": 1}, \"minContains\": 2, "
         "\"maxContains\": 3}}",
         {"[]", "[1]", "[0, 1]", "[1, 1, 1, 1]", NULL, "[1, 1]", "[1, 0, 1, 1]"}},
        {"{\"type\": \"array\", \"minItems\": 1, \"not\": {\"items\": {\"type\": \"null\"}}}",
         {"[0]", "[null, 1]", NULL, "[]", "[null]"}},
        {"{\"type\": \"array\", \"not\": {\"anyOf\": [{\"items\": {\"type\": \"null\"}}, "
         "{\"items\": {\"type\": \"integer\"}}]}}",
         {"[null, 1]", "[\"a\"]", "[1, 2, null]", NULL, "[]", "[null]", "[1, 2]"}},
        {"{\"type\": \"array\", \"maxContains\": 0}", {"[]", "[1]", NULL, "1"}},
    };
    CHECK_ROWS(rows);
}

#define UNIQUE "{\"type\": \"array\", \"uniqueItems\": true"

TEST(different) {
    static const row rows[] = {
        {UNIQUE ", \"items\": {\"enum\": [1, 2.50, 1.0, \"1\"]}}",
         {"[]", "[1, 2.5, \"1\"]", "[1.0, \"1\"]", "[2.50, 1]", NULL, "[1, 1]", "[1, 1.0]",
          "[2.5, 2.50]", "[\"1\", \"1\"]"}},
        {UNIQUE ", \"items\": {\"type\": \"integer\", \"minimum\": -1, \"exclusiveMaximum\": 11}, "
                "\"minItems\": 2}",
         {"[1, 10]", "[-1, 0, 1]", "[10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1]", NULL, "[1]", "[1, 1]",
          "[11, 1]", "[10, 1, 10]"}},
        {UNIQUE ", \"items\": {\"enum\": [[1], {\"a\": 1, \"b\": [2]}, [1.0], {\"b\": [2.0], "
                "\"a\": 1}, [1, 1], null]}}",
         {"[[1], [1, 1], null]", "[{\"b\": [2], \"a\": 1}, [1]]", NULL, "[[1], [1]]",
          "[[1], [1.0]]", "[null, null]", "[{\"a\": 1, \"b\": [2]}, {\"b\": [2], \"a\": 1}]"}},
        {UNIQUE
         ", \"prefixItems\": [{\"type\": \"boolean\"}, {\"type\": \"boolean\"}], \"items\": false}",
         {"[]", "[true]", "[true, false]", "[false, true]", NULL, "[true, true]",
          "[true, false, true]", "[1]"}},
        {UNIQUE ", \"prefixItems\": [{\"enum\": [1, 2]}, {\"enum\": [2, 3, null]}], \"items\": "
                "{\"enum\": [1, 3, \"a\"]}, \"minItems\": 2}",
         {"[1, 2]", "[2, 3, 1]", "[1, 3, \"a\"]", "[2, null, \"a\", 3, 1]", NULL, "[1]", "[2, 2]",
          "[1, 3, 3]", "[2, 3, 1, 1]", "[1, 2, 1]"}},
        {UNIQUE ", \"prefixItems\": [{\"type\": \"string\"}, {\"type\": \"integer\"}, {\"type\": "
                "\"object\"}], \"maxItems\": 3}",
         {"[\"a\", 1, {}]", "[]", NULL, "[1]", "[\"a\", 1, 1]", "[\"a\", 1, {}, 1]"}},
        {UNIQUE ", \"prefixItems\": [{\"type\": \"string\"}], \"items\": {\"type\": [\"boolean\", "
                "\"null\"]}}",
         {"[\"a\"]", "[\"a\", true, null, false]", NULL, "[true]", "[\"a\", true, true]"}},
        {UNIQUE ", \"items\": {\"const\": 0.0}}",
         {"[]", "[0]", "[0.0]", NULL, "[0, 0]", "[0, 0.0]", "[0, -0]"}},
        {UNIQUE ", \"maxItems\": 1}", {"[]", "[[1, 1]]", NULL, "[1, 2]"}},
        {"{\"type\": \"array\", \"uniqueItems\": false}", {"[1, 1]", NULL, "1"}},
    };
    CHECK_ROWS(rows);
}

/* Numbers that would make a large automaton are refused before it is built. */
TEST(refused) {
    static const refusal rows[] = {
        {"{\"contains\": {\"const\": 1}, \"minContains\": 1e9}", GGL_UNSUPPORTED,
         "s: #/contains: its counts"},
        {"{\"contains\": {\"const\": 1}, \"minContains\": 100, \"maxItems\": 450}", GGL_UNSUPPORTED,
         "s: #/contains: its counts"},
        {"{\"contains\": {\"const\": 1}, \"minContains\": -1}", GGL_FORMAT,
         "s: #/minContains: must be a whole number"},
        {"{\"contains\": {\"const\": 1}, \"maxContains\": 1.5}", GGL_FORMAT,
         "s: #/maxContains: must be a whole number"},
        {"{\"contains\": {\"contains\": {\"uniqueItems\": true}}, \"maxContains\": 1}",
         GGL_UNSUPPORTED, "s: #/contains/contains/uniqueItems: its negation"},
        {"{\"type\": \"array\", \"contains\": {\"const\": 1}, \"minContains\": 3, \"maxContains\": "
         "2}",
         GGL_FORMAT, "s: #: no JSON value is valid"},
        {"{\"type\": \"array\", \"contains\": {\"const\": 1}, \"minContains\": 3, \"maxItems\": 2}",
         GGL_FORMAT, "s: #: no JSON value is valid"},
        {UNIQUE ", \"items\": {\"type\": \"integer\", \"minimum\": 0}}", GGL_UNSUPPORTED,
         "s: #/uniqueItems: is supported only for"},
        {UNIQUE ", \"items\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 1}}",
         GGL_UNSUPPORTED, "s: #/uniqueItems: is "},
        {UNIQUE
         ", \"items\": {\"enum\": [[1], 2], \"type\": [\"array\", \"string\"]}, \"contains\": {}}",
         GGL_UNSUPPORTED, "s: #/uniqueItems: together with contains"},
        {UNIQUE
         ", \"prefixItems\": [{\"type\": \"string\"}, {\"type\": \"string\"}], \"items\": false}",
         GGL_UNSUPPORTED, "s: #/uniqueItems: is supported only for"},
        {UNIQUE ", \"prefixItems\": [{\"type\": \"string\"}, {\"type\": \"integer\"}], \"items\": "
                "{\"const\": \"a\"}}",
         GGL_UNSUPPORTED, "s: #/uniqueItems: is supported only for"},
        {UNIQUE ", \"items\": {\"type\": \"boolean\"}, \"minItems\": 3}", GGL_FORMAT,
         "s: #: no JSON value is valid"},
    };
    CHECK_REFUSALS(rows);
}

/* Thirty places for the same forty values. */
TEST(many_places_are_refused) {
    char text[4000] = UNIQUE ", \"items\": false, \"prefixItems\": [";
    char *at = text + strlen(text);
    for (int i = 0; i < 30; i++)
        at += sprintf(at, "%s{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 40}",
                      i ? ", " : "");
    sprintf(at, "]}");
    const refusal rows[] = {{text, GGL_UNSUPPORTED, "s: #/uniqueItems: is supported only for"}};
    CHECK_REFUSALS(rows);
}

/* What llm-server allows a schema. */
static llm_grammar *compile_cheaply(const char *schema, ggl_status expected) {
    const llm_schema_params p = {
        .size = sizeof p, .compact = true, .max_steps = 1 << 21, .max_bytes = 64 << 20};
    ggl_error err = {0};
    llm_grammar *g;
    const ggl_status st = llm_grammar_from_schema_with(&g, schema, strlen(schema), "s", &p, &err);
    CHECK_MSG(st == expected, "%.80s: status %d, '%s'", schema, (int)st, err.msg);
    return g;
}

TEST(counts_are_cheap) {
    llm_grammar *g = compile_cheaply("{\"type\": \"array\", \"contains\": {\"const\": 1}, "
                                     "\"minContains\": 200, \"maxContains\": 400}",
                                     GGL_OK);
    CHECK(g && !fits(g, "[1, 1]"));
    llm_grammar_free(g);
    /* six conditions that may hold in any combination */
    llm_grammar_free(compile_cheaply(
        "{\"type\": \"array\", \"allOf\": [{\"contains\": {\"multipleOf\": 2}, \"maxContains\": "
        "2}, {\"contains\": {\"multipleOf\": 3}, "
        "\"maxContains\": 2}, {\"contains\": {\"multipleOf\": 5}, \"maxContains\": 2}, "
        "{\"contains\": {\"multipleOf\": 7}, \"maxContains\": 2}, {\"contains\": "
        "{\"multipleOf\": 11}, \"maxContains\": 2}, {\"contains\": {\"multipleOf\": 13}, "
        "\"maxContains\": 2}]}",
        GGL_UNSUPPORTED));
}

static bool compile_counts(void *arg) {
    static const char schema[] =
        "{\"type\": \"array\", \"prefixItems\": [{\"type\": \"object\", \"unevaluatedProperties\": "
        "{\"type\": \"integer\"}, "
        "\"patternProperties\": {\"^a\": {}}, \"anyOf\": [{\"properties\": {\"b\": {}}}, "
        "{\"patternProperties\": {\"^a\": {}}}]}, "
        "{\"uniqueItems\": true, \"prefixItems\": [{\"enum\": [1, [2], {\"a\": 3}]}], \"items\": "
        "{\"enum\": [1.0, [2.0]]}}], "
        "\"contains\": {\"multipleOf\": 0.7}, \"maxContains\": 2, \"unevaluatedItems\": {\"type\": "
        "\"null\"}}";
    ggl_error err = {0};
    llm_grammar *g;
    const ggl_status st = llm_grammar_from_schema(&g, schema, sizeof schema - 1, "s", &err);
    if (arg)
        CHECK_OK(st, &err);
    llm_grammar_free(g);
    return st == GGL_OK;
}

/* Every allocation may fail: that is an error, and never another grammar. */
TEST(every_allocation_may_fail) {
    int once = 1;
    CHECK(compile_counts(&once));
    CHECK(alloc_fail_each(compile_counts, NULL) > 50);
}

/* Whether any text fits is not known before long searches, so they have a limit of their own. */
LONG_TEST(values_without_an_end) {
    static const char text[] =
        "{\"type\": \"array\", \"uniqueItems\": true, \"maxItems\": 3, \"items\": {\"type\": "
        "\"integer\", "
        "\"minimum\": 0, \"maximum\": 1000000000000000000000000000000, \"multipleOf\": 1999, "
        "\"not\": {\"multipleOf\": 1999}}}";
    ggl_error err = {0};
    llm_grammar *g;
    CHECK_INT(llm_grammar_from_schema(&g, text, sizeof text - 1, "s", &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "uniqueItems");
}
