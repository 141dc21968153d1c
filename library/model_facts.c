#include "model_facts.h"

#include <stdio.h>

static ggl_str text(const ggl_gguf *f, const char *key) {
    ggl_error err;
    ggl_str x = {"", 0};
    (void)ggl_gguf_get_string(f, key, &x, &err);
    return x;
}

/* An integer of the model's own keys, such as embedding_length; 0 if none. */
static int64_t own_integer(const ggl_gguf *f, ggl_str arch, const char *name) {
    ggl_error err;
    char key[128];
    int64_t x = 0;
    snprintf(key, sizeof key, "%.*s.%.40s", (int)(arch.n < 64 ? arch.n : 64), arch.s, name);
    return ggl_gguf_get_integer(f, key, &x, &err) == 1 ? x : 0;
}

llm_model_facts llm_model_facts_of(const ggl_gguf *f) {
    llm_model_facts m = {.architecture = text(f, "general.architecture"),
                         .name = text(f, "general.name")};
    m.n_embd = own_integer(f, m.architecture, "embedding_length");
    m.n_layer = own_integer(f, m.architecture, "block_count");
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        double n = 1;
        for (int d = 0; d < t->n_dims; d++)
            n *= (double)t->ne[d];
        m.n_params += n;
        m.bytes += (double)t->size;
    }
    return m;
}
