/* JSON values of texts, for parameters that are values. */
#ifndef TESTS_VALUE_OF_H
#define TESTS_VALUE_OF_H

#include "common/json.h"
#include "test.h"

/* Valid until 256 other texts were asked for; the same text has the same value. NULL: the text is NULL, or no JSON, which fails the test. */
TEST_UNUSED static const json_value *value_of(const char *text) {
    static struct {
        char *text;
        llm_json *doc;
    } kept[256];
    static size_t n;
    ggl_error why;
    if (!text)
        return NULL;
    for (size_t i = 0; i < 256; i++)
        if (kept[i].doc && strcmp(kept[i].text, text) == 0)
            return &kept[i].doc->root;
    const size_t k = n++ % 256;
    llm_json_free(kept[k].doc);
    free(kept[k].text);
    kept[k].text = strdup(text);
    const ggl_status st = llm_json_parse(&kept[k].doc, kept[k].text, strlen(text), "text", &why);
    return CHECK_OK(st, &why) ? &kept[k].doc->root : NULL;
}

#endif
