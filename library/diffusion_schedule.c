/* The schedule by which a model of the diffusion kind unmasks a text, from llm_diffuse_params. */
#include "generation.h"

ggl_status llm_diffusion_read(llm_diffusion *d, const llm_context *c, const llm_diffuse_params *p,
                              ggl_error *err) {
    if (!llm_session_sees_all(c->session) || !llm_session_has_logits(c->session))
        return ggl_fail(err, GGL_UNSUPPORTED, "the model is not of the diffusion kind");
    *d = llm_diffusion_default();
    d->n_steps = p->n_steps;
    d->n_block = p->n_block;
    d->eps = p->eps == 0 ? d->eps : p->eps;
    d->order_temp = p->order_temp;
    d->cfg_scale = p->cfg_scale;
    const ggl_status st = p->order ? llm_diffusion_order_find(p->order, &d->order, err) : GGL_OK;
    return st == GGL_OK ? llm_diffusion_of(d, c->model, err) : st;
}
