/* Products of the same columns that are one dispatch, such as Q, K and V, or gate and up. Their
 * shaders read one type of weights from one binding (linear.glsl), so the weights must lie in one
 * region, near enough to each other. The biases, too. Products of chosen matrices join if the same
 * index chooses from equally many. */
#include "linear.h"
#include "repack.h"
#include "weights.h"

/* A range of a region. */
typedef struct range {
    size_t begin, end;
} range;

static bool has(const ggl_step *s, int src) {
    return s->n_src > src && s->src[src].region >= 0;
}

/* True if the product is a single step, with one matrix, or with one that an index chooses. */
static bool is_plain(const ggl_step *s) {
    const ggl_operand *w = &s->src[LINEAR_W];
    return s->n_links == 1 && (has(s, 3) || w->ne[2] == 1) && w->ne[3] == 1;
}

/* True if the same index chooses their matrices, which have the same layout; or if no index
 * does. */
static bool same_choice(const ggl_step *a, const ggl_step *b) {
    const ggl_operand *v = &a->src[LINEAR_W], *w = &b->src[LINEAR_W];
    if (!has(a, 3) && !has(b, 3))
        return true;
    return has(a, 3) && has(b, 3) && ggl_read(a->node, 3) == ggl_read(b->node, 3) &&
           v->ne[1] == w->ne[1] && v->ne[2] == w->ne[2] && v->nb[2] == w->nb[2];
}

/* True if the bias is a constant vector, which no dispatch writes. */
static bool has_plain_bias(const ggl_step *s) {
    const ggl_operand *bias = &s->src[LINEAR_BIAS];
    return bias->region >= GGL_REGION_REPACKED && bias->ne[0] == s->dst.ne[0] && bias->ne[1] == 1 &&
           bias->ne[2] == 1 && bias->ne[3] == 1;
}

static range range_of_weight(const ggl_step *s) {
    const ggl_operand *w = &s->src[LINEAR_W];
    const size_t size = w->repacked
                            ? (size_t)w->ne[2] * ggl_vk_packed_size(w->type, w->ne[0], w->ne[1])
                            : (size_t)(w->ne[2] - 1) * w->nb[2] + (size_t)w->ne[1] * w->nb[1];
    return (range){w->offset, w->offset + size};
}

static range range_of_bias(const ggl_step *s) {
    const ggl_operand *bias = &s->src[LINEAR_BIAS];
    return (range){bias->offset, bias->offset + (size_t)bias->ne[0] * sizeof(float)};
}

/* True if the ranges of all steps fit one binding. */
static bool are_near(const vk_backend *b, range (*of)(const ggl_step *),
                     const ggl_step *const *member, int n, const ggl_step *next) {
    range all = of(next);
    for (int i = 0; i < n; i++) {
        const range r = of(member[i]);
        all.begin = r.begin < all.begin ? r.begin : all.begin;
        all.end = r.end > all.end ? r.end : all.end;
    }
    return all.end - all.begin <= ggl_vk_most_bound(b);
}

/* True if both have a bias, or neither, and one binding can hold both. */
static bool same_bias(const ggl_step *a, const ggl_step *b) {
    if (!has(a, 2) && !has(b, 2))
        return true;
    return has(a, 2) && has(b, 2) && has_plain_bias(a) && has_plain_bias(b) &&
           a->src[LINEAR_BIAS].region == b->src[LINEAR_BIAS].region;
}

bool ggl_vk_linear_joins(const vk_backend *b, const ggl_step *const *member, int n,
                         const ggl_step *next) {
    const ggl_step *a = member[0];
    const ggl_operand *v = &a->src[LINEAR_W], *w = &next->src[LINEAR_W];
    const int most = has(a, 3) ? VK_LINEAR_PAIR : VK_LINEAR_MEMBERS;
    if (n == most || !is_plain(a) || !is_plain(next) || !same_choice(a, next))
        return false;
    /* one tensor: places in the arena are not known yet */
    if (ggl_read(a->node, 0) != ggl_read(next->node, 0) ||
        a->src[LINEAR_X].form != next->src[LINEAR_X].form)
        return false;
    return v->type == w->type && v->repacked == w->repacked && v->nb[1] == w->nb[1] &&
           v->region == w->region && v->region >= GGL_REGION_REPACKED && same_bias(a, next) &&
           are_near(b, range_of_weight, member, n, next) &&
           (!has(a, 2) || are_near(b, range_of_bias, member, n, next));
}
