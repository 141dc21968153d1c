/* More tokens for a model: llm_add_tokens. */
#include "context.h"
#include "ggl/internal/params.h"
#include "llm/internal/train.h"
#include "llm/train.h"
#include "opening.h"

ggl_status llm_add_tokens(const char *path, const llm_add_tokens_params *params, int32_t *first,
                          ggl_error *err) {
    llm_add_tokens_params p = {.size = sizeof p};
    llm_context *c = NULL;
    int32_t id = 0;
    ggl_error own;
    err = err ? err : &own;
    ggl_status st = GGL_READ_PARAMS(llm_add_tokens_params, &p, params, err);
    if (st == GGL_OK && !p.model)
        st = ggl_fail(err, GGL_USAGE, "more tokens need a model");
    const llm_open_params of = {.size = sizeof of, .arch = p.arch};
    if (st == GGL_OK)
        st = llm_context_open_path(&c, p.model, &of, LLM_OPENED_MODEL, err);
    if (st == GGL_OK) {
        const llm_train_tokens t = {.size = sizeof t,
                                    .arch = llm_model_arch(c->model),
                                    .of = llm_model_file(c->model),
                                    .special = p.special,
                                    .n_special = p.n_special,
                                    .seed = p.seed};
        st = llm_train_add_tokens(&t, path, &id, err);
    }
    if (st == GGL_OK && first)
        *first = id;
    llm_close(c);
    return st;
}
