/* A product, its sum with a residual, and the norm of that sum as one step: wo or down, and the norm of what
 * follows. A norm needs whole columns, so the workgroup of linear_vec.comp that ends last computes it. With more
 * columns than it should compute one after the other, the norm is a dispatch of its own (rows.comp), which has a
 * workgroup for each. A weighted sum in place of the product (op_weighted.c) uses the same functions. */
#include <string.h>

#include "linear.h"
#include "shaders/kinds.h"

/* Links: of the product and the sum; of a norm. */
enum { PRODUCT = 2, NORM = 3, MOST_COLS = 4 };

/* True if the norm's weights are a vector without gaps, or absent. */
static bool has_plain_weight(const vk_norm *l) {
    const ggl_operand *w = l->mul ? ggl_vk_other(l->mul) : NULL;
    return !w || (w->ne[0] == l->norm->dst.ne[0] && w->ne[1] == 1 && w->ne[2] == 1 &&
                  w->ne[3] == 1 && w->nb[0] == sizeof(float));
}

int ggl_vk_linear_norm_links(const ggl_step *step, int n) {
    const int links = n > PRODUCT ? ggl_vk_norm_links(step + PRODUCT, n - PRODUCT) : 0;
    if (links == 0 ||
        step[PRODUCT - 1].dst.region < 0) /* the workgroups meet in the sum's memory */
        return 0;
    const vk_norm l = ggl_vk_norm_of(step + PRODUCT, links);
    return has_plain_weight(&l) ? links : 0;
}

bool ggl_vk_take_norm(const ggl_step *step, vk_product *p, uint32_t lanes) {
    const bool takes = step->n_links > PRODUCT && ggl_vk_is_narrow(p) && p->n_cols <= MOST_COLS &&
                       ggl_vk_n_outer(p) == 1 && ggl_vk_row_local(p->y->ne[0]) >= lanes;
    if (takes)
        p->norm = ggl_vk_norm_of(step + PRODUCT, step->n_links - PRODUCT);
    return takes;
}

ggl_status ggl_vk_emit_norm(vk_emit *e, ggl_error *err) {
    const int links = e->step->n_links - PRODUCT;
    if (links <= 0)
        return GGL_OK;
    ggl_step norm[NORM];
    memcpy(norm, e->step + PRODUCT, (size_t)links * sizeof *norm);
    norm[0].n_links = links;
    norm[0].n_members = 1;
    norm[0].src[0] = e->step[PRODUCT - 1].dst;
    vk_emit part = *e;
    part.step = norm;
    return ggl_vk_op_rows.emit(&part, err);
}

uint32_t ggl_vk_bind_norm_weight(vk_emit *e, vk_call *c, const vk_norm *l) {
    static const ggl_operand absent = {.region = -1};
    return ggl_vk_bind(e, c, l->mul ? ggl_vk_other(l->mul) : &absent, false);
}

void ggl_vk_bind_norm(vk_emit *e, vk_call *c, const vk_norm *l, vk_norm_places *at) {
    const ggl_operand *normed = ggl_vk_normed(l);
    at->normed = ggl_vk_bind(e, c, ggl_vk_stored(l, normed), true);
    at->blocks = ggl_vk_bind(e, c, l->round ? &l->round->dst : ggl_vk_stored(l, normed), true);
    ggl_vk_bind_counters(e, c, 1);
    c->spec[16] = ggl_vk_norm_kind(l) | (l->mul ? THEN_WEIGHT : 0) | (l->round ? THEN_ROUND : 0) |
                  (normed->region >= 0 ? THEN_STORE : 0);
}

void ggl_vk_push_norm(vk_call *c, const vk_norm *l, const vk_norm_places *at) {
    ggl_vk_push_float(c, ggl_vk_norm_eps(l));
    ggl_vk_push(c, at->weight);
    ggl_vk_push(c, at->normed);
    ggl_vk_push(c, at->blocks);
}
