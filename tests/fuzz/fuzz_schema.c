/* JSON schemas: any text. A grammar that comes out has a text, and its matcher takes any bytes. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "llm/internal/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const texts[] = {"{\"a\": [1, -2.50e-3, \"\\u00e9\"], \"b\": {}}",
                                        "\"2024-02-29T01:02:03Z\"", "[[], {\"b\": 1, \"a\": 2}]"};
    llm_grammar *g;
    llm_matcher *m;
    size_t n;
    if (llm_grammar_from_schema(&g, (const char *)data, size, "fuzz", NULL) != GGL_OK)
        return 0;
    if (llm_matcher_new(&m, g, NULL, NULL) == GGL_OK) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            llm_matcher_reset(m);
            if (llm_matcher_accept_bytes(m, texts[i], strlen(texts[i]), &n, NULL) == GGL_OK &&
                n > strlen(texts[i]))
                abort();
        }
        llm_matcher_free(m);
    }
    llm_grammar_free(g);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const text[] = {
        "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": [\"integer\", \"null\"], "
        "\"minimum\": -1.5e2, \"exclusiveMaximum\": 7, \"multipleOf\": 0.5}, \"b\": {\"$ref\": "
        "\"#/$defs/x\"}}, \"required\": [\"b\"], \"additionalProperties\": false, \"$defs\": "
        "{\"x\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/x\"}, \"maxItems\": 3}}}",
        "{\"type\": \"string\", \"pattern\": "
        "\"^(?!a)(?:[a-z\\\\d]{2,5}?|\\\\u00e9+\\\\/)*(?=x)|\\\\p{Lu}.$\", \"minLength\": 1, "
        "\"maxLength\": 9, \"not\": {\"const\": \"ab\\ud83d\\ude00\"}}",
        "{\"oneOf\": [{\"properties\": {\"k\": {\"const\": 1}}, \"required\": [\"k\"]}, {\"if\": "
        "{\"type\": \"string\", \"format\": \"date-time\"}, \"then\": {\"format\": \"ipv6\"}, "
        "\"else\": {\"enum\": [1, [2], {\"a\": null}]}}]}",
        "{\"patternProperties\": {\"^x\": true, \"y$\": {\"type\": \"number\"}}, "
        "\"propertyNames\": {\"maxLength\": 4}, \"minProperties\": 1, \"maxProperties\": 3, "
        "\"dependencies\": {\"x\": [\"y\"], \"z\": {\"required\": [\"a\"]}}}",
        "{\"$id\": \"http://a/b/\", \"prefixItems\": [{\"$ref\": \"c#d\"}, {\"$id\": \"c\", "
        "\"$anchor\": \"d\", \"enum\": [\"a\", 1.0]}], \"items\": false, \"contains\": {\"type\": "
        "\"boolean\"}, \"uniqueItems\": true, \"allOf\": [{\"anyOf\": [true, {\"minItems\": 1}]}]}",
        "{\"unevaluatedProperties\": {\"multipleOf\": 0.37}, \"properties\": {\"a\": {}}, "
        "\"anyOf\": "
        "[{\"patternProperties\": {\"^b\": {}}}, {\"dependentSchemas\": {\"c\": {\"properties\": "
        "{\"d\": {}}}}}]}",
        "{\"unevaluatedItems\": false, \"prefixItems\": [{\"enum\": [1, [1.0]]}], \"contains\": "
        "{\"type\": \"null\"}, \"minContains\": 2, \"maxContains\": 3}",
        "{\"uniqueItems\": true, \"maxItems\": 3, \"prefixItems\": [{\"type\": \"boolean\"}, "
        "{\"type\": "
        "\"integer\", \"minimum\": 1, \"maximum\": 9}], \"items\": {\"enum\": [{\"a\": 1}, 2, "
        "2.0]}}",
    };
    if (k >= (int)(sizeof text / sizeof *text))
        return false;
    *size = strlen(text[k]);
    *data = malloc(*size);
    if (!*data)
        abort();
    memcpy(*data, text[k], *size);
    return true;
}
