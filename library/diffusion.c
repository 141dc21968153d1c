/* llm_diffuse_tokens. */
#include <string.h>

#include "arrays.h"
#include "generation.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"

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
    const int32_t n_new = p.n_length == 0 ? LLM_DIFFUSION_LENGTH : p.n_length;
    llm_diffusion d;
    teller t = {&p, &d, c};
    st = llm_diffusion_read(&d, c, &p, err);
    if (st == GGL_OK && n_new < 1)
        st = ggl_fail(err, GGL_USAGE, "n_length is %d, but must be 1 or more", (int)n_new);
    if (st != GGL_OK)
        return st;
    d.prompt = prompt;
    d.n_prompt = (int64_t)n_prompt;
    d.n_length = d.n_prompt + n_new;
    d.n_steps = d.n_steps == 0 ? n_new : d.n_steps;
    d.temp = p.temp;
    d.top_k = p.top_k;
    d.top_p = p.top_p == 0 ? 1 : p.top_p;
    d.seed = p.seed;
    d.step = tell;
    d.ctx = &t;
    atomic_store(&c->cancelled, false);
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
