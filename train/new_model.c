/* New models, and models to which tensors or tokens are added: llm_new_model. */
#include <stdio.h>
#include <string.h>

#include "builtin/builtin.h"
#include "context.h"
#include "ggl/backends.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "llm/internal/pooling.h"
#include "llm/internal/trainer.h"
#include "llm/train.h"
#include "opening.h"

/* Opens a model, whole or what has its tokenizer: a file, a tokenizer.json, or a built-in one. */
static ggl_status open_file(ggl_gguf **out, const char *path, bool whole, ggl_error *err) {
    const llm_load_params p = {.size = sizeof p,
                               .open_backend = ggl_backend_open,
                               .close_backend = ggl_backend_close,
                               .vocab_only = !whole};
    llm_builtin built_in;
    if (!llm_builtin_find(path, &built_in))
        return llm_load(out, path, NULL, &p, err);
    if (!built_in.name)
        return llm_builtin_refuse(path, GGL_NOT_FOUND, err);
    return llm_load_memory(out, built_in.data, built_in.size, built_in.name, &p, err);
}

/* The text that a model needs to be read as the descriptor says: none if that is built in. */
static ggl_str text_of(const llm_arch *arch) {
    size_t n, n_own;
    const char *s = llm_arch_text(arch, &n), *name, *own;
    for (int k = 0; llm_arch_builtin(k, &name, &own, &n_own); k++)
        if (n == n_own && memcmp(s, own, n) == 0)
            return (ggl_str){0};
    return (ggl_str){s, n};
}

/* Returns the text behind '=' if the key is pooling_type of the family; else NULL. */
static const char *pooling_of(const char *key, const char *family) {
    static const char name[] = ".pooling_type=";
    const size_t n = strcspn(key, ".");
    const bool is_own = n == 0 || (strlen(family) == n && strncmp(key, family, n) == 0);
    return is_own && strncmp(key + n, name, sizeof name - 1) == 0 ? key + n + sizeof name - 1
                                                                  : NULL;
}

/* Copies the keys to *out, which the caller frees, pooling_type as the number that files have. */
static ggl_status copy_keys(char ***out, const llm_new_model_params *p, const char *family,
                            ggl_error *err) {
    char **key = *out = ggl_calloc(p->n_keys + 1, sizeof *key);
    if (!key)
        return ggl_fail(err, GGL_NOMEM, "out of memory for keys");
    for (size_t i = 0; i < p->n_keys; i++) {
        const char *pooling = pooling_of(p->key[i], family);
        const size_t size = strlen(p->key[i]) + 2;
        int type;
        if (pooling && llm_pooling_type(&type, pooling, err) != GGL_OK)
            return GGL_USAGE;
        key[i] = ggl_calloc(size, 1);
        if (!key[i])
            return ggl_fail(err, GGL_NOMEM, "out of memory for keys");
        if (pooling)
            snprintf(key[i], size, "%.*s%d", (int)(pooling - p->key[i]), p->key[i], type);
        else
            strcpy(key[i], p->key[i]);
    }
    return GGL_OK;
}

/* Returns the family by which the descriptor was named, or else its first one. */
static const char *family_of(const llm_arch *arch, const char *given) {
    for (int i = 0; llm_arch_family(arch, i); i++)
        if (strcmp(llm_arch_family(arch, i), given) == 0)
            return llm_arch_family(arch, i);
    return llm_arch_family(arch, 0);
}

/* Makes a new model, or one with more tensors. */
static ggl_status make_new(const char *path, const llm_new_model_params *p, ggl_error *err) {
    char **key = NULL;
    ggl_gguf *vocab = NULL;
    llm_arch *arch = NULL;
    if (!p->arch || (p->tokenizer && p->from))
        return ggl_fail(err, GGL_USAGE,
                        "a new model needs arch, and either tokenizer or from; a model that gets "
                        "more tokens needs from and special");
    ggl_status st = llm_arch_open_given(&arch, p->arch, NULL, err);
    if (st == GGL_OK && !p->tokenizer && !p->from && llm_arch_has_tokens(arch))
        st = ggl_fail(err, GGL_USAGE,
                      "%s reads tokens: a tokenizer is missing (--tokenizer FILE, as in: "
                      "--tokenizer tokenizer.json)",
                      llm_arch_name(arch));
    const char *family = p->name ? p->name : st == GGL_OK ? family_of(arch, p->arch) : NULL;
    if (st == GGL_OK)
        st = copy_keys(&key, p, family, err);
    if (st == GGL_OK && (p->tokenizer || p->from))
        st = open_file(&vocab, p->from ? p->from : p->tokenizer, p->from != NULL, err);
    if (st == GGL_OK) {
        const llm_train_new n = {.size = sizeof n,
                                 .arch = arch,
                                 .name = family,
                                 .vocab = p->from ? NULL : vocab,
                                 .base = p->from ? vocab : NULL,
                                 .descriptor = p->from ? text_of(arch) : (ggl_str){0},
                                 .key = (const char *const *)key,
                                 .n_keys = p->n_keys,
                                 .with = p->with,
                                 .n_with = p->n_with,
                                 .init = p->init,
                                 .n_init = p->n_init,
                                 .sigma = p->sigma,
                                 .seed = p->seed};
        st = llm_train_new_model(&n, path, err);
    }
    for (size_t i = 0; key && i < p->n_keys; i++)
        ggl_free(key[i]);
    ggl_free(key);
    ggl_gguf_close(vocab);
    llm_arch_free(arch);
    return st;
}

static ggl_status add_tokens(const char *path, const llm_new_model_params *p, ggl_error *err) {
    llm_context *c = NULL;
    int32_t first = 0;
    if (p->name || p->tokenizer || p->n_keys || p->n_with || p->n_init || p->sigma != 0)
        return ggl_fail(err, GGL_USAGE,
                        "a model that gets more tokens gets nothing else: name, tokenizer, key, "
                        "with, init and sigma are of other new ones");
    const llm_open_params of = {.size = sizeof of, .arch = p->arch};
    ggl_status st = llm_context_open_path(&c, p->from, &of, LLM_OPENED_MODEL, err);
    if (st == GGL_OK) {
        const llm_train_tokens t = {.size = sizeof t,
                                    .arch = llm_model_arch(c->model),
                                    .of = llm_model_file(c->model),
                                    .special = p->special,
                                    .n_special = p->n_special,
                                    .seed = p->seed};
        st = llm_train_add_tokens(&t, path, &first, err);
    }
    if (st == GGL_OK && p->first_special)
        *p->first_special = first;
    llm_close(c);
    return st;
}

ggl_status llm_new_model(const char *path, const llm_new_model_params *params, ggl_error *err) {
    llm_new_model_params p = {.size = sizeof p};
    ggl_error own;
    err = err ? err : &own;
    const ggl_status st = GGL_READ_PARAMS(llm_new_model_params, &p, params, err);
    if (st != GGL_OK)
        return st;
    if (p.n_special > 0 && !p.from)
        return ggl_fail(err, GGL_USAGE, "special tokens are added to a model: `from` names it");
    return p.n_special > 0 ? add_tokens(path, &p, err) : make_new(path, &p, err);
}
