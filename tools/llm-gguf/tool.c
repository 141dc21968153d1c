#include "tool.h"

#include <stdlib.h>
#include <string.h>

#include "common/paths.h"

int gguf_check_path(const char *tool, const char *path, char *wrong, size_t size) {
    tool_copy_errors(wrong, size);
    const int code =
        tool_check_paths(tool, &(tool_path){"FILE", path, .needed = true, .model = true}, 1);
    tool_copy_errors(NULL, 0);
    return code;
}

/* --- patterns --------------------------------------------------------------------------------- */

int gguf_patterns_open(const char *tool, const char *flag, const arg_list *list,
                       gguf_patterns *out) {
    *out = (gguf_patterns){0};
    if (list->n == 0)
        return -1;
    out->r = calloc(list->n, sizeof *out->r);
    out->matched = calloc(list->n, sizeof *out->matched);
    if (!out->r || !out->matched) {
        gguf_patterns_close(out);
        return tool_error(tool, 1, "out of memory");
    }
    for (; out->n < list->n; out->n++) {
        const char *s = list->s[out->n];
        ggl_error err = {0};
        if (llm_pattern_read(&out->r[out->n], (ggl_str){s, strlen(s)}, &err) != GGL_OK) {
            gguf_patterns_close(out);
            return tool_error(tool, 2, "%s: %s", flag, err.msg);
        }
    }
    return -1;
}

bool gguf_patterns_match(const gguf_patterns *p, ggl_str name) {
    bool matches = p->n == 0;
    for (size_t i = 0; i < p->n; i++)
        if (llm_pattern_matches(p->r[i], name))
            matches = p->matched[i] = true;
    return matches;
}

void gguf_patterns_warn(const char *tool, const char *flag, const arg_list *list,
                        const gguf_patterns *p, const char *thing) {
    for (size_t i = 0; i < p->n; i++)
        if (!p->matched[i])
            tool_warning(tool, "%s'%s' matches no %s", flag, list->s[i], thing);
}

void gguf_patterns_close(gguf_patterns *p) {
    for (size_t i = 0; i < p->n; i++)
        llm_pattern_free(p->r[i]);
    free(p->r);
    free(p->matched);
    *p = (gguf_patterns){0};
}
