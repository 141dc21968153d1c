#include "llm/internal/token_list.h"

#include <math.h>

#include "ggl/alloc.h"

ggl_status llm_token_list_read(llm_token_list *out, const ggl_gguf *file, const char *key,
                               ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, key);
    *out = (llm_token_list){0};
    if (!v)
        return GGL_OK;
    out->id = ggl_calloc((size_t)v->n + 1, sizeof *out->id);
    if (!out->id)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory for key %s", ggl_gguf_name(file), key);
    for (uint64_t i = 0; i < v->n; i++) {
        double x = 0.5;
        if (!v->is_array || !ggl_gguf_number(v, i, &x) || x != floor(x)) {
            llm_token_list_fini(out);
            return ggl_fail(err, GGL_FORMAT, "%s: key %s is no list of tokens", ggl_gguf_name(file),
                            key);
        }
        out->id[out->n++] = x >= 0 && x < INT32_MAX ? (int32_t)x : -1;
    }
    return GGL_OK;
}

void llm_token_list_fini(llm_token_list *l) {
    ggl_free(l->id);
    *l = (llm_token_list){0};
}
