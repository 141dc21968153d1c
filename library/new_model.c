/* New models, and models with more tokens: llm_new_model. */
#include <string.h>

#include "builtin/builtin.h"
#include "context.h"
#include "ggl/backends.h"
#include "ggl/internal/params.h"
#include "llm/internal/train.h"
#include "llm/train.h"
#include "opening.h"

/* Opens what has the tokenizer: a model, a tokenizer.json, or a built-in model. */
static ggl_status open_vocab(ggl_gguf **out, const char *path, ggl_error *err) {
    const llm_load_params p = {.size = sizeof p,
                               .open_backend = ggl_backend_open,
                               .close_backend = ggl_backend_close,
                               .vocab_only = true};
    llm_builtin built_in;
    if (!llm_builtin_find(path, &built_in))
        return llm_load(out, path, NULL, &p, err);
    if (!built_in.name)
        return ggl_fail(err, GGL_NOT_FOUND, "%s: the built-in models are %s", path,
                        llm_builtin_names());
    return llm_load_memory(out, built_in.data, built_in.size, built_in.name, &p, err);
}

static ggl_status make_new(const char *path, const llm_new_model_params *p, ggl_error *err) {
    ggl_gguf *vocab = NULL;
    llm_arch *arch = NULL;
    if (!p->arch || !p->tokenizer)
        return ggl_fail(err, GGL_USAGE, "a new model needs arch and tokenizer");
    ggl_status st = llm_arch_open_given(&arch, p->arch, NULL, err);
    if (st == GGL_OK)
        st = open_vocab(&vocab, p->tokenizer, err);
    if (st == GGL_OK) {
        const llm_train_new n = {.size = sizeof n,
                                 .arch = arch,
                                 .name = p->name ? p->name : llm_arch_family(arch, 0),
                                 .vocab = vocab,
                                 .key = p->key,
                                 .n_keys = p->n_keys,
                                 .with = p->with,
                                 .n_with = p->n_with,
                                 .init = p->init,
                                 .n_init = p->n_init,
                                 .sigma = p->sigma,
                                 .seed = p->seed};
        st = llm_train_new_model(&n, path, err);
    }
    ggl_gguf_close(vocab);
    llm_arch_free(arch);
    return st;
}

static ggl_status add_tokens(const char *path, const llm_new_model_params *p, ggl_error *err) {
    llm_context *c = NULL;
    int32_t first = 0;
    if (p->name || p->tokenizer || p->n_keys || p->n_with || p->n_init || p->sigma != 0)
        return ggl_fail(err, GGL_USAGE,
                        "with `from` a model only gets more tokens: name, tokenizer, key, with, "
                        "init and sigma are of new ones");
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
    return p.from ? add_tokens(path, &p, err) : make_new(path, &p, err);
}
