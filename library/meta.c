/* The keys and values of the model's file. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "context.h"
#include "ggl/internal/gguf.h"

const char *llm_context_key(const llm_context *c, size_t k, size_t *n) {
    const ggl_gguf *file = llm_model_file(c->model);
    *n = 0;
    if (k >= ggl_gguf_n_values(file))
        return NULL;
    const ggl_str key = ggl_gguf_value_at(file, k)->key;
    *n = key.n;
    return key.s;
}

ggl_status llm_context_text(const llm_context *c, const char *key, char **text, size_t *n,
                            ggl_error *err) {
    ggl_str value;
    *text = NULL;
    *n = 0;
    if (!key)
        return ggl_fail(err, GGL_USAGE, "llm_context_text needs a key");
    const int found = ggl_gguf_get_string(llm_model_file(c->model), key, &value, err);
    if (found == 0)
        return ggl_fail(err, GGL_NOT_FOUND, "the model's file has no key '%s'", key);
    if (found < 0)
        return GGL_FORMAT;
    *text = ggl_calloc(value.n + 1, 1);
    if (!*text)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    memcpy(*text, value.s, value.n);
    *n = value.n;
    return GGL_OK;
}

/* A number as C's locale writes it; null: JSON has no such number. */
static void put_number(llm_json_out *out, double x, int digits) {
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, x);
    char *point = strpbrk(text, ",.");
    if (point)
        *point = '.';
    llm_json_put_text(out, isfinite(x) ? text : "null");
}

static void put_element(llm_json_out *out, const ggl_gguf_value *v, uint64_t i) {
    char text[24];
    ggl_str s;
    bool flag;
    int64_t integer;
    uint64_t large;
    double x;
    if (ggl_gguf_string(v, i, &s)) {
        llm_json_put_string(out, s);
    } else if (ggl_gguf_bool(v, i, &flag)) {
        llm_json_put_text(out, flag ? "true" : "false");
    } else if (ggl_gguf_integer(v, i, &integer)) {
        snprintf(text, sizeof text, "%" PRId64, integer);
        llm_json_put_text(out, text);
    } else if (ggl_gguf_unsigned(v, i, &large)) {
        snprintf(text, sizeof text, "%" PRIu64, large);
        llm_json_put_text(out, text);
    } else if (ggl_gguf_number(v, i, &x)) {
        put_number(out, x, v->type == GGL_GGUF_F32 ? 9 : 17);
    }
}

ggl_status llm_context_json(const llm_context *c, const char *key, char **json, size_t *n,
                            ggl_error *err) {
    llm_json_out out = {0};
    *json = NULL;
    *n = 0;
    if (!key)
        return ggl_fail(err, GGL_USAGE, "llm_context_json needs a key");
    const ggl_gguf_value *v = ggl_gguf_find(llm_model_file(c->model), key);
    if (!v)
        return ggl_fail(err, GGL_NOT_FOUND, "the model's file has no key '%s'", key);
    llm_json_put_text(&out, v->is_array ? "[" : "");
    for (uint64_t i = 0; i < v->n; i++) {
        llm_json_put_text(&out, i > 0 ? ", " : "");
        put_element(&out, v, i);
    }
    llm_json_put_text(&out, v->is_array ? "]" : "");
    if (out.failed) {
        ggl_free(out.s);
        return ggl_fail(err, GGL_NOMEM, "out of memory for the value of '%s'", key);
    }
    *json = out.s;
    *n = out.n;
    return GGL_OK;
}
