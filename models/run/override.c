#include "override.h"

#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "quant/keys.h"

#define ARCHITECTURE "general.architecture"

/* Returns the last one of that name; NULL: none. */
static const quant_key *find(const quant_key *k, size_t n, const char *name) {
    while (n > 0 && strcmp(k[n - 1].key, name) != 0)
        n--;
    return n > 0 ? &k[n - 1] : NULL;
}

/* Puts the architecture before a key that begins with '.'. */
static ggl_status complete(quant_key *k, const ggl_gguf *f, const quant_key *all, size_t n,
                           ggl_error *err) {
    const quant_key *other = find(all, n, ARCHITECTURE);
    ggl_str arch = {"", 0};
    char whole[2 * sizeof k->key];
    if (k->key[0] != '.')
        return GGL_OK;
    if (other && other->type == GGL_GGUF_STRING)
        arch = (ggl_str){other->is.text, strlen(other->is.text)};
    else if (ggl_gguf_get_string(f, ARCHITECTURE, &arch, err) < 0)
        return GGL_FORMAT;
    const int used = arch.n < sizeof k->key
                         ? snprintf(whole, sizeof whole, "%.*s%s", (int)arch.n, arch.s, k->key)
                         : 0;
    if (arch.n == 0 || used <= 0 || (size_t)used >= sizeof k->key)
        return ggl_fail(err, GGL_USAGE,
                        "'%s' is a key of the architecture, but " ARCHITECTURE
                        " is missing or too long",
                        k->key);
    memcpy(k->key, whole, (size_t)used + 1);
    return GGL_OK;
}

static ggl_status read_all(quant_key *k, const ggl_gguf *f, const char *const *text, size_t n,
                           ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; st == GGL_OK && i < n; i++)
        st = llm_quant_read_key(&k[i], text[i], err);
    for (size_t i = 0; st == GGL_OK && i < n; i++)
        st = complete(&k[i], f, k, n, err);
    return st;
}

ggl_status llm_override_keys(ggl_gguf *file, const char *const *text, size_t n, ggl_error *err) {
    if (n == 0)
        return GGL_OK;
    quant_key *k = ggl_calloc(n, sizeof *k);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_status st = k && w ? read_all(k, file, text, n, err)
                           : ggl_fail(err, GGL_NOMEM, "out of memory for %zu keys", n);
    for (size_t i = 0; st == GGL_OK && i < n; i++)
        if (find(k, n, k[i].key) == &k[i])
            llm_quant_put_key(w, &k[i]);
    if (st == GGL_OK)
        st = ggl_gguf_change(file, w, err);
    ggl_gguf_writer_free(w);
    ggl_free(k);
    return st == GGL_OK ? st : ggl_within(err, st, "override");
}
