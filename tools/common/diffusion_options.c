#include "diffusion_options.h"

const char *const diffusion_algorithms[] = {
    "origin", "entropy", "margin", "random", "confidence", "0", "1", "2", "3", "4", NULL};

llm_diffusion diffusion_schedule(const diffusion_options *o) {
    llm_diffusion d = llm_diffusion_default();
    d.n_steps = o->steps;
    d.n_block = o->block;
    d.eps = o->eps > 0 ? o->eps : d.eps;
    d.order = (llm_diffusion_order)(o->algorithm % LLM_DIFFUSE_N_ORDERS);
    d.order_temp = o->alg_temp;
    d.cfg_scale = o->cfg;
    return d;
}

const char *diffusion_options_given(const diffusion_options *o) {
    const diffusion_options none = DIFFUSION_DEFAULTS;
    return o->steps != none.steps           ? "--diffusion-steps"
           : o->block != none.block         ? "--diffusion-block-length"
           : o->eps != none.eps             ? "--diffusion-eps"
           : o->algorithm != none.algorithm ? "--diffusion-algorithm"
           : o->alg_temp != none.alg_temp   ? "--diffusion-alg-temp"
           : o->cfg != none.cfg             ? "--diffusion-cfg-scale"
                                            : NULL;
}
