#include "keys.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUANTIZATION_VERSION = 2 }; /* of the block formats, as in general.quantization_version */

#define FILE_TYPE "general.file_type"

/* Returns the last one of that name; NULL: none. */
static const quant_key *find(const quant_key *k, size_t n, ggl_str name) {
    while (n > 0 && !ggl_str_is(name, k[n - 1].key))
        n--;
    return n > 0 ? &k[n - 1] : NULL;
}

void llm_quant_put_key(ggl_gguf_writer *w, const quant_key *k) {
    if (k->type == GGL_GGUF_STRING)
        ggl_gguf_put_string(w, k->key, k->is.text, strlen(k->is.text));
    else
        ggl_gguf_put(w, k->key, k->type, false, &k->is, 1);
}

/* Puts those that the file does not have, and that are the last of their name. */
static void put_new(ggl_gguf_writer *w, const ggl_gguf *f, const quant_key *k, size_t n,
                    const quant_key *before, size_t n_before) {
    for (size_t i = 0; i < n; i++) {
        const ggl_str name = {k[i].key, strlen(k[i].key)};
        if (find(k, n, name) == &k[i] && !find(before, n_before, name) &&
            !ggl_gguf_find(f, k[i].key))
            llm_quant_put_key(w, &k[i]);
    }
}

ggl_status llm_quant_put_keys(ggl_gguf_writer *w, const ggl_gguf *f, const quant_choice *c,
                              int64_t n_layer, const quant_key *own, size_t n, ggl_error *err) {
    const quant_mix *mix = c->mix;
    const bool copy = !mix && !c->type && !c->pick; /* then what the file says is still true of
                                                     * most tensors */
    const quant_key types[] = {
        {"general.quantization_version", GGL_GGUF_U32, {.u32 = QUANTIZATION_VERSION}},
        {FILE_TYPE, GGL_GGUF_U32, {.u32 = mix ? (uint32_t)mix->file_type : 0}}};
    const size_t n_types = copy ? 0 : mix ? 2 : 1;
    ggl_status s = GGL_OK;
    for (size_t i = 0; s == GGL_OK && i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        const quant_key *k = find(own, n, v->key);
        if (v->key.n > 6 && memcmp(v->key.s, "split.", 6) == 0)
            continue;
        k = k ? k : find(types, n_types, v->key);
        if (k)
            llm_quant_put_key(w, k);
        else if (copy || mix || !ggl_str_is(v->key, FILE_TYPE))
            s = llm_quant_prune_put(c->prune, w, f, v, n_layer, err);
        /* else: a type without a number gets no key, rather than a wrong one */
    }
    put_new(w, f, types, n_types, own, n);
    put_new(w, f, own, n, NULL, 0);
    return s;
}

static bool read_value(quant_key *k, const char *type, size_t n, const char *value) {
    char *end;
    errno = 0;
    if (n == 3 && memcmp(type, "int", 3) == 0) {
        const long long v = strtoll(value, &end, 10);
        k->type = v >= 0 && v <= UINT32_MAX ? GGL_GGUF_U32 : GGL_GGUF_I64;
        if (k->type == GGL_GGUF_U32)
            k->is.u32 = (uint32_t)v;
        else
            k->is.i64 = v;
        return *value && !*end && errno == 0;
    }
    if (n == 5 && memcmp(type, "float", 5) == 0) {
        k->type = GGL_GGUF_F32;
        k->is.f32 = strtof(value, &end);
        return *value && !*end && isfinite(k->is.f32);
    }
    if (n == 4 && memcmp(type, "bool", 4) == 0) {
        k->type = GGL_GGUF_BOOL;
        k->is.truth = strcmp(value, "true") == 0;
        return k->is.truth || strcmp(value, "false") == 0;
    }
    k->type = GGL_GGUF_STRING;
    k->is.text = value;
    return n == 3 && memcmp(type, "str", 3) == 0;
}

ggl_status llm_quant_read_key(quant_key *k, const char *text, ggl_error *err) {
    const char *equals = strchr(text, '='), *colon = equals ? strchr(equals, ':') : NULL;
    const size_t n = equals ? (size_t)(equals - text) : 0;
    *k = (quant_key){.type = GGL_GGUF_STRING, .is = {.text = ""}};
    if (n >= sizeof k->key)
        return ggl_fail(err, GGL_USAGE, "the key '%.40s..' is too long", text);
    memcpy(k->key, text, n);
    if (!colon || n == 0 || !read_value(k, equals + 1, (size_t)(colon - equals - 1), colon + 1))
        return ggl_fail(err, GGL_USAGE,
                        "'%s' is not KEY=TYPE:VALUE, with the TYPE int, float, bool (true, false) "
                        "or str",
                        text);
    return GGL_OK;
}
