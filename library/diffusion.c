/* llm_diffuse_tokens. */
#include <string.h>

#include "arrays.h"
#include "context.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "llm/internal/diffuse.h"

/* By llm_diffusion_order. */
static const char *const orders[LLM_DIFFUSE_N_ORDERS] = {"origin", "entropy", "margin", "random",
                                                         "confidence"};

static ggl_status find_order(const char *name, llm_diffusion_order *out, ggl_error *err) {
    *out = LLM_DIFFUSE_CONFIDENCE;
    if (!name)
        return GGL_OK;
    for (int k = 0; k < LLM_DIFFUSE_N_ORDERS; k++)
        if (strcmp(orders[k], name) == 0) {
            *out = (llm_diffusion_order)k;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_USAGE,
                    "order '%.40s' is none of origin, entropy, margin, random and confidence",
                    name);
}

typedef struct teller {
    const llm_diffuse_params *p;
    const llm_diffusion *d;
    const llm_context *c;
} teller;

static bool tell(void *ctx, int64_t n_done, const int32_t *id) {
    const teller *t = ctx;
    if (llm_context_is_cancelled((void *)t->c))
        return false;
    return !t->p->step ||
           t->p->step(t->p->user, (int32_t)n_done, (int32_t)t->d->n_steps, id + t->d->n_prompt,
                      (size_t)(t->d->n_length - t->d->n_prompt), t->d->mask);
}

/* Returns how many of n tokens come before the first that ends a text. */
static size_t until_end(const llm_context *c, const int32_t *id, size_t n) {
    size_t k = 0;
    while (k < n && !(c->tokenizer && llm_tokenizer_is_eog(c->tokenizer, id[k])))
        k++;
    return k;
}

ggl_status llm_diffuse_tokens(llm_context *c, const int32_t *prompt, size_t n_prompt,
                              const llm_diffuse_params *params, int32_t **id, size_t *n,
                              ggl_error *err) {
    llm_diffuse_params p = {.size = sizeof p};
    *id = NULL;
    *n = 0;
    ggl_status st = GGL_READ_PARAMS(llm_diffuse_params, &p, params, err);
    if (st == GGL_OK)
        st = llm_need_array("prompt", prompt, n_prompt, err);
    if (st != GGL_OK)
        return st;
    if (!llm_session_sees_all(c->session) || !llm_session_has_logits(c->session))
        return ggl_fail(err, GGL_UNSUPPORTED, "the model is not of the diffusion kind");
    const int32_t n_new = p.n_length == 0 ? 64 : p.n_length;
    llm_diffusion d = {.prompt = prompt,
                       .n_prompt = (int64_t)n_prompt,
                       .n_length = (int64_t)n_prompt + n_new,
                       .n_steps = p.n_steps == 0 ? n_new : p.n_steps,
                       .n_block = p.n_block,
                       .eps = p.eps == 0 ? 0.001 : p.eps,
                       .order_temp = p.order_temp,
                       .temp = p.temp,
                       .top_k = p.top_k,
                       .top_p = p.top_p == 0 ? 1 : p.top_p,
                       .cfg_scale = p.cfg_scale,
                       .seed = p.seed};
    teller t = {&p, &d, c};
    d.step = tell;
    d.ctx = &t;
    st = find_order(p.order, &d.order, err);
    if (st == GGL_OK)
        st = llm_diffusion_of(&d, c->model, err);
    if (st == GGL_OK && n_new < 1)
        st = ggl_fail(err, GGL_USAGE, "n_length is %d, but must be 1 or more", (int)n_new);
    atomic_store(&c->cancelled, false);
    if (st == GGL_OK)
        st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_clear(c, err);
    if (st != GGL_OK)
        return st;
    int32_t *all = ggl_calloc((size_t)d.n_length, sizeof *all);
    st = all ? llm_diffuse(c->session, &d, all, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    (void)llm_context_clear(c, NULL);
    if (st != GGL_OK) {
        ggl_free(all);
        return st;
    }
    memmove(all, all + n_prompt, (size_t)n_new * sizeof *all);
    *id = all;
    *n = until_end(c, all, (size_t)n_new);
    return GGL_OK;
}
