/* A product with a residual and norms as one step, in two orders: product, sum, norm of the sum, as before wo's or
 * down's successor; and product, norm, sum, with or without a norm of the sum, as in gemma2 and olmo2. A norm needs whole
 * columns, so the workgroup of linear_vec.comp that ends last computes it. With more columns than it should compute one
 * after the other, norms are dispatches of their own (rows.comp), which have a workgroup for each. A weighted sum in place of
 * the product (op_weighted.c) uses the functions of the first order. */
#include <string.h>

#include "linear.h"
#include "shaders/kinds.h"
#include "weights.h"

/* Links: of the product and the sum; of a norm and what follows it; of the sum and that. */
enum { PRODUCT = 2, NORM = 3, SUM = 1 + NORM };

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

bool ggl_vk_take_norm(const vk_emit *e, vk_product *p) {
    const bool takes = e->step->n_links > PRODUCT && ggl_vk_has_last(e, p);
    if (takes)
        p->norm = ggl_vk_norm_of(e->step + PRODUCT, e->step->n_links - PRODUCT);
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

/* --- the norm before the sum ------------------------------------------------------------------ */

/* Returns the links of the norm before the sum: itself, and its weights. */
static int first_links(const ggl_step *step) {
    return step[2].node->op == GGL_OP_ADD ? 1 : 2;
}

/* True if both norms are of one kind, and one binding can hold the weights of both, or they have none. */
static bool are_alike(const vk_backend *b, const vk_norm *x, const vk_norm *y) {
    if (ggl_vk_norm_kind(x) != ggl_vk_norm_kind(y) || !x->mul != !y->mul || !has_plain_weight(y))
        return false;
    if (!x->mul)
        return true;
    const ggl_operand *v = ggl_vk_other(x->mul), *w = ggl_vk_other(y->mul);
    const size_t apart = v->offset > w->offset ? v->offset - w->offset : w->offset - v->offset;
    return v->region == w->region && v->region >= GGL_REGION_REPACKED &&
           apart + (size_t)v->ne[0] * sizeof(float) <= ggl_vk_most_bound(b);
}

/* Returns how many of the n steps after the sum (step[-1]) run with it: a norm like the first one, whose
 * result is either numbers or bytes; or else the rounding of the sum. */
static int links_after(const vk_backend *b, const vk_norm *first, const ggl_step *step, int n) {
    int links = ggl_vk_norm_links(step, n);
    if (n < 1 || links == 0)
        return n < 1 ? 0 : ggl_vk_and_form(step - 1, n + 1, 1) - 1;
    const vk_norm l = ggl_vk_norm_of(step, links);
    if (!are_alike(b, first, &l))
        return 0;
    return l.round && ggl_vk_normed(&l)->region >= 0 ? links - 1 : links;
}

int ggl_vk_norm_first_links(const vk_backend *b, const ggl_step *step, int n) {
    const int links = step->dst.region < 0 ? ggl_vk_norm_links(step + 1, n - 1) : 0;
    if (links == 0 || links > 2 || step[links].kind != GGL_STEP_NODE ||
        !ggl_vk_feeds(step + links, n - links, GGL_OP_ADD))
        return 1;
    const ggl_step *sum = step + links + 1;
    const vk_norm first = ggl_vk_norm_of(step + 1, links);
    if (sum->dst.region < 0 || !has_plain_weight(&first) ||
        memcmp(ggl_vk_other(sum)->ne, step->dst.ne, sizeof step->dst.ne) != 0)
        return 1;
    return links + 2 + links_after(b, &first, sum + 1, n - links - 2);
}

size_t ggl_vk_norm_first_scratch(const ggl_step *step, int64_t n) {
    return ggl_vk_norm_is_first(step) ? ggl_vk_result_size(&step->dst, n) : 0;
}

/* Emits the norm of y, the values in the scratch. The result overwrites them. */
static ggl_status emit_first(vk_emit *e, const ggl_operand *y, ggl_error *err) {
    ggl_step norm[NORM];
    const int links = first_links(e->step);
    memcpy(norm, e->step + 1, (size_t)links * sizeof *norm);
    norm[0].n_links = links;
    norm[0].src[0] = *y;
    norm[links - 1].dst = *y;
    vk_emit part = *e;
    part.step = norm;
    return ggl_vk_op_rows.emit(&part, err);
}

/* Emits the sum of y, the values in the scratch, and the other operand; then the links that follow. */
static ggl_status emit_sum(vk_emit *e, const ggl_operand *y, ggl_error *err) {
    ggl_step sum[SUM];
    const int before = 1 + first_links(e->step), links = e->step->n_links - before;
    const bool rounds = links == 2 && e->step[before + 1].kind == GGL_STEP_FORM;
    memcpy(sum, e->step + before, (size_t)links * sizeof *sum);
    sum[0].n_links = rounds ? 1 : links;
    sum[0].src[sum[0].link] = *y;
    vk_emit part = *e;
    part.step = sum;
    ggl_status st = ggl_vk_op_binary.emit(&part, err);
    if (st != GGL_OK || !rounds)
        return st;
    sum[1].src[0] = sum[0].dst;
    part.step = &sum[1];
    return ggl_vk_op_round.emit(&part, err);
}

/* Sets what the last workgroup does. */
static void set_norms(const ggl_step *step, vk_product *p) {
    const int links = first_links(step), rest = step->n_links - links - PRODUCT;
    p->norm = ggl_vk_norm_of(step + 1, links);
    p->add = step + links + 1;
    p->bias = ggl_vk_other(p->add);
    if (rest > 0 && p->add[1].kind == GGL_STEP_FORM)
        p->after.round = p->add + 1;
    else if (rest > 0)
        p->after = ggl_vk_norm_of(p->add + 1, rest);
}

ggl_status ggl_vk_emit_norm_first(vk_emit *e, ggl_error *err) {
    ggl_step product = *e->step;
    product.n_links = 1;
    ggl_vk_place_in_scratch(e, 0, &product.dst);
    vk_emit part = *e;
    part.step = &product;
    vk_product p = ggl_vk_product_of(&part, &product);
    if (ggl_vk_has_last(e, &p)) {
        set_norms(e->step, &p);
        return ggl_vk_emit_products(&part, &p, err);
    }
    part.scratch += ggl_vk_result_size(&product.dst, e->n);
    ggl_status st = ggl_vk_emit_plain(&part, err);
    if (st == GGL_OK)
        st = emit_first(e, &product.dst, err);
    return st == GGL_OK ? emit_sum(e, &product.dst, err) : st;
}
