#include "prune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"

/* Reads a number at *s, and moves *s past it. */
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

/* Copies element i of a number or a boolean to the place, and returns its bytes. */
static size_t copy_number(const ggl_gguf_value *v, uint64_t i, void *to) {
    static const uint8_t size[] = {
        [GGL_GGUF_U8] = 1,  [GGL_GGUF_I8] = 1,  [GGL_GGUF_U16] = 2, [GGL_GGUF_I16] = 2,
        [GGL_GGUF_U32] = 4, [GGL_GGUF_I32] = 4, [GGL_GGUF_F32] = 4, [GGL_GGUF_BOOL] = 1,
        [GGL_GGUF_U64] = 8, [GGL_GGUF_I64] = 8, [GGL_GGUF_F64] = 8};
    int64_t integer = 0;
    uint64_t natural = 0;
    double number = 0;
    bool truth = false;
    const void *from = &number;
    float less;
    if (ggl_gguf_bool(v, i, &truth)) {
        natural = truth;
        from = &natural;
    } else if (ggl_gguf_unsigned(v, i, &natural)) {
        from = &natural;
    } else if (ggl_gguf_integer(v, i, &integer)) {
        from = &integer;
    } else if (ggl_gguf_number(v, i, &number) && v->type == GGL_GGUF_F32) {
        less = (float)number;
        from = &less;
    }
    memcpy(to, from, size[v->type]); /* files and machines are little-endian */
    return size[v->type];
}

/* Puts the elements of an array whose layers stay. */
static ggl_status put_array(const quant_prune *p, ggl_gguf_writer *w, const ggl_gguf_value *v,
                            const char *key, ggl_error *err) {
    uint8_t *data = ggl_calloc(v->n, 8);
    size_t n = 0, size = 0;
    if (!data)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (uint64_t i = 0; i < v->n; i++) {
        if (i < QUANT_MAX_LAYERS && p->gone[i])
            continue;
        size += copy_number(v, i, data + size);
        n++;
    }
    ggl_gguf_put(w, key, v->type, true, data, n);
    ggl_free(data);
    return GGL_OK;
}

/* True if the key is {arch}.NAME; sets *name. */
static bool is_of_model(const ggl_gguf *f, const ggl_gguf_value *v, ggl_str *name) {
    ggl_str arch = {"", 0};
    (void)ggl_gguf_get_string(f, "general.architecture", &arch, NULL);
    if (v->key.n <= arch.n || memcmp(v->key.s, arch.s, arch.n) != 0 || v->key.s[arch.n] != '.')
        return false;
    *name = (ggl_str){v->key.s + arch.n + 1, v->key.n - arch.n - 1};
    return true;
}

/* True if a list has an element for each layer. The list of rope's sections has one for each axis of a
 * picture instead, even if a model has as many layers as a picture has axes. */
static bool is_per_layer(const ggl_gguf_value *v, ggl_str name, int64_t n_layer) {
    return v->is_array && v->type != GGL_GGUF_STRING && v->n == (uint64_t)n_layer &&
           !ggl_str_is(name, "rope.dimension_sections");
}

ggl_status llm_quant_prune_put(const quant_prune *p, ggl_gguf_writer *w, const ggl_gguf *f,
                               const ggl_gguf_value *v, int64_t n_layer, ggl_error *err) {
    char key[256];
    ggl_str name;
    if (!p || p->n == 0 || v->key.n >= sizeof key || !is_of_model(f, v, &name)) {
        ggl_gguf_put_value(w, v);
        return GGL_OK;
    }
    memcpy(key, v->key.s, v->key.n);
    key[v->key.n] = '\0';
    if (is_per_layer(v, name, n_layer))
        return put_array(p, w, v, key, err);
    const uint32_t left = (uint32_t)(n_layer - p->n);
    if (ggl_str_is(name, "block_count") && !v->is_array)
        ggl_gguf_put(w, key, GGL_GGUF_U32, false, &left, 1);
    else
        ggl_gguf_put_value(w, v);
    return GGL_OK;
}
