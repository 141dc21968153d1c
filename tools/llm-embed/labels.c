#include "labels.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "options.h"

enum { MOST_ARCH = 64 };

static int take_names(labels *l, const json_value *list) {
    l->name = ggl_calloc(list->n + 1, sizeof *l->name);
    if (!l->name)
        return tool_error(TOOL, 1, "out of memory");
    for (uint32_t i = 0; i < list->n; i++) {
        const ggl_str s =
            list->item[i].kind == JSON_STRING ? json_str(&list->item[i]) : (ggl_str){"", 0};
        char *copy = ggl_calloc(s.n + 1, 1);
        if (!copy)
            return tool_error(TOOL, 1, "out of memory");
        memcpy(copy, s.s, s.n);
        l->name[l->n++] = copy;
    }
    return -1;
}

int labels_read(labels *l, const llm_context *c) {
    ggl_error err = {0};
    char key[MOST_ARCH + 40], *arch = NULL, *json = NULL;
    size_t n;
    llm_json *doc = NULL;
    if (llm_context_text(c, "general.architecture", &arch, &n, NULL) != GGL_OK)
        return -1;
    snprintf(key, sizeof key, "%.*s.classifier.output_labels", MOST_ARCH, arch);
    ggl_free(arch);
    ggl_status st = llm_context_json(c, key, &json, &n, &err);
    if (st == GGL_NOT_FOUND)
        return -1;
    if (st == GGL_OK)
        st = llm_json_parse(&doc, json, n, key, &err);
    int code = st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
    if (code < 0 && doc->root.kind == JSON_ARRAY)
        code = take_names(l, &doc->root);
    llm_json_free(doc);
    ggl_free(json);
    return code;
}

const char *labels_of(const labels *l, size_t k) {
    return k < l->n ? l->name[k] : NULL;
}

void labels_fini(labels *l) {
    for (size_t i = 0; i < l->n; i++)
        ggl_free(l->name[i]);
    ggl_free(l->name);
    *l = (labels){0};
}
