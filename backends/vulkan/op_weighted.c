/* weighted(y [n, k], w [k]) -> [n]: the weighted sum of rows, such as the results of the chosen experts. Its sum
 * with other values of its shape (a residual), and the norm of that, are one step with it. As in linear_norm.c, the
 * workgroup that ends last computes the norm of a few tokens, and a dispatch of its own that of more. */
#include <string.h>

#include "linear.h"

enum { LOCAL = 128, SUM = 2 /* links: weighted, and the sum */, MOST_TOKENS = 4 };

static void bind_operands(vk_emit *e, vk_call *c, const ggl_operand *y, const ggl_operand *addend) {
    const ggl_operand *x = &e->step->src[0], *w = &e->step->src[1];
    vk_push_weighted *p = VK_PUSH(c, weighted);
    p->n = (uint32_t)y->ne[0];
    p->rows = (uint32_t)ggl_vk_rows(e, y);
    p->y_at = ggl_vk_bind(e, c, y, true);
    p->terms = (uint32_t)x->ne[1];
    p->x_at = ggl_vk_bind(e, c, x, false);
    p->x_stride[0] = ggl_vk_stride(e, x, 0);
    p->x_stride[1] = ggl_vk_stride(e, x, 1);
    p->x_stride[2] = ggl_vk_stride(e, x, GGL_BATCH_DIM);
    p->w_at = ggl_vk_bind(e, c, w, false);
    p->w_stride[0] = ggl_vk_stride(e, w, 0);
    p->w_stride[1] = ggl_vk_stride(e, w, GGL_BATCH_DIM);
    p->addend_at = ggl_vk_bind(e, c, addend, false);
    p->addend_stride[0] = ggl_vk_stride(e, addend, 0);
    p->addend_stride[1] = ggl_vk_stride(e, addend, GGL_BATCH_DIM);
}

/* Binds what the norm needs. */
static void add_norm(vk_emit *e, vk_call *c, const vk_norm *norm) {
    static const ggl_operand absent = {.region = -1};
    const vk_product p = {.norm = *norm};
    vk_norm_places at = {0};
    ggl_vk_bind_norm_weight(e, c, &p, &at);
    ggl_vk_bind(e, c, &absent, false);
    c->spec.weighted.then = ggl_vk_bind_norm(e, c, &p, &at);
    c->push.weighted.eps = ggl_vk_last_eps(&p);
    c->push.weighted.norm_weight_at = at.weight;
    c->push.weighted.normed_at = at.normed;
    c->push.weighted.blocks_at = at.blocks;
}

static ggl_status weighted_emit(vk_emit *e, ggl_error *err) {
    static const ggl_operand absent = {.region = -1};
    const ggl_step *step = e->step;
    const bool adds = step->n_links > 1;
    const ggl_operand *y = adds ? &step[1].dst : &step->dst;
    const bool takes = step->n_links > SUM && ggl_vk_rows(e, y) <= MOST_TOKENS;
    vk_call c = {.shader =
                     e->b->features.subgroup ? VK_SHADER_WEIGHTED_SUBGROUP : VK_SHADER_WEIGHTED,
                 VK_SPEC(weighted, .local = takes ? ggl_vk_row_local(e->b, y->ne[0]) : LOCAL,
                         .addend = adds)};
    bind_operands(e, &c, y, adds ? ggl_vk_other(&step[1]) : &absent);
    if (takes) {
        const vk_norm norm = ggl_vk_norm_of(step + SUM, step->n_links - SUM);
        add_norm(e, &c, &norm);
    }
    c.groups[0] = ggl_vk_groups(ggl_vk_count(e, y), c.spec.weighted.local);
    const ggl_status st = ggl_vk_dispatch(e, &c, err);
    return st == GGL_OK && !takes ? ggl_vk_emit_norm(e, err) : st;
}

static int weighted_chain(const vk_backend *b, const ggl_step *step, int n) {
    (void)b;
    if (!ggl_vk_feeds(step, n, GGL_OP_ADD) ||
        memcmp(ggl_vk_other(&step[1])->ne, step->dst.ne, sizeof step->dst.ne) != 0)
        return 1;
    return SUM + ggl_vk_linear_norm_links(step, n);
}

const vk_op ggl_vk_op_weighted = {
    .emit = weighted_emit, .chain = weighted_chain, .refuses = ggl_vk_refuses_all_but_f32};
