#include "prune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"

/* Reads a number at *s, and moves *s behind it. */
static bool read_number(const char **s, long *out) {
    char *end;
    if (**s < '0' || **s > '9')
        return false;
    *out = strtol(*s, &end, 10);
    *s = end;
    return *out < QUANT_MAX_LAYERS;
}

ggl_status llm_quant_prune_read(quant_prune *p, const char *list, ggl_error *err) {
    const char *s = list;
    *p = (quant_prune){0};
    for (;;) {
        long first, last;
        bool good = read_number(&s, &first);
        last = first;
        if (good && *s == '-') {
            s++;
            good = read_number(&s, &last) && last >= first;
        }
        if (!good || (*s && *s != ','))
            return ggl_fail(err, GGL_USAGE,
                            "'%s' is not a list of layers such as 5,7,9-11, with numbers below %d",
                            list, QUANT_MAX_LAYERS);
        for (long i = first; i <= last; i++) {
            p->n += !p->gone[i];
            p->gone[i] = true;
        }
        if (!*s++)
            return GGL_OK;
    }
}

bool llm_quant_prune_name(const quant_prune *p, const char *name, char *to, size_t size) {
    const char *at = strstr(name, "blk."), *s = at ? at + 4 : NULL;
    long layer;
    snprintf(to, size, "%s", name);
    if (p->n == 0 || !s || !read_number(&s, &layer) || *s != '.')
        return true;
    long below = 0;
    for (long i = 0; i < layer; i++)
        below += p->gone[i];
    snprintf(to, size, "%.*s%ld%s", (int)(at + 4 - name), name, layer - below, s);
    return !p->gone[layer];
}

/* Copies element i of a number to the place, and returns its bytes. */
static size_t copy_number(const ggl_gguf_value *v, uint64_t i, void *to) {
    static const uint8_t size[] = {
        [GGL_GGUF_U8] = 1,  [GGL_GGUF_I8] = 1,  [GGL_GGUF_U16] = 2, [GGL_GGUF_I16] = 2,
        [GGL_GGUF_U32] = 4, [GGL_GGUF_I32] = 4, [GGL_GGUF_U64] = 8, [GGL_GGUF_I64] = 8};
    int64_t integer = 0;
    double number = 0;
    bool truth = false;
    if (v->type == GGL_GGUF_BOOL && ggl_gguf_bool(v, i, &truth)) {
        memcpy(to, &(uint8_t){truth}, 1);
        return 1;
    }
    if (v->type == GGL_GGUF_F32 || v->type == GGL_GGUF_F64) {
        (void)ggl_gguf_number(v, i, &number);
        if (v->type == GGL_GGUF_F64)
            memcpy(to, &number, 8);
        else
            memcpy(to, &(float){(float)number}, 4);
        return v->type == GGL_GGUF_F64 ? 8 : 4;
    }
    (void)ggl_gguf_integer(v, i, &integer); /* one beyond int64_t counts no layers: it becomes 0 */
    memcpy(to, &integer, size[v->type]);
    return size[v->type];
}

/* Puts the elements of an array whose layers stay. */
static void put_array(const quant_prune *p, ggl_gguf_writer *w, const ggl_gguf_value *v,
                      const char *key) {
    uint8_t *data = ggl_calloc(v->n, 8);
    ggl_str *strings = ggl_calloc(v->n, sizeof *strings);
    size_t n = 0, size = 0;
    for (uint64_t i = 0; i < v->n && data && strings; i++) {
        if (i < QUANT_MAX_LAYERS && p->gone[i])
            continue;
        if (v->type == GGL_GGUF_STRING)
            (void)ggl_gguf_string(v, i, &strings[n]);
        else
            size += copy_number(v, i, data + size);
        n++;
    }
    if (v->type == GGL_GGUF_STRING)
        ggl_gguf_put_strings(w, key, strings, n);
    else
        ggl_gguf_put(w, key, v->type, true, data, n);
    ggl_free(data);
    ggl_free(strings);
}

static bool ends_with(ggl_str s, const char *end) {
    const size_t n = strlen(end);
    return s.n >= n && memcmp(s.s + s.n - n, end, n) == 0;
}

void llm_quant_prune_put(const quant_prune *p, ggl_gguf_writer *w, const ggl_gguf_value *v,
                         int64_t n_layer) {
    char key[256];
    snprintf(key, sizeof key, "%.*s", (int)v->key.n, v->key.s);
    const bool of_model = !strchr(key, '.') ||
                          (strncmp(key, "general.", 8) != 0 && strncmp(key, "tokenizer.", 10) != 0);
    if (p->n > 0 && v->key.n < sizeof key && !v->is_array && ends_with(v->key, ".block_count")) {
        const uint32_t left = (uint32_t)(n_layer - p->n);
        ggl_gguf_put(w, key, GGL_GGUF_U32, false, &left, 1);
    } else if (p->n > 0 && v->key.n < sizeof key && v->is_array && of_model && n_layer > 1 &&
               v->type != GGL_GGUF_STRING && !ends_with(v->key, ".dimension_sections") &&
               v->n == (uint64_t)n_layer) {
        put_array(p, w, v, key);
    } else {
        ggl_gguf_put_value(w, v);
    }
}
