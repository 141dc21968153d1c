/* Factors of weights. Files with weights of few values (ternary ones, NVFP4) have a factor for the matrix
 * NAME.weight in a tensor NAME.scale. Descriptors multiply the product by it: the model computes with
 * W = NAME.scale * NAME.weight. What an adapter changes is added to W, so after the multiplication. */
#include <string.h>

#include "adapt.h"
#include "rotate.h"

/* --- factors in expressions ------------------------------------------------------------------- */

/* Nodes that a search visits at most: factors stand near their products. */
enum { MOST_STEPS = 200 };

typedef struct search {
    const arch_eval *ev;
    int n_steps;
    const ggl_tensor
        *factor; /* of find_factor: found; of depends: one of the two that are related */
    bool alone;
    const ggl_tensor *w; /* of depends: the other one, or NULL */
    bool (*is_it)(const struct search *s, const ggl_tensor *t);
} search;

static const ggl_tensor *source_of(const search *s, const ggl_tensor *param) {
    const struct arch_adapt *x = s->ev->adapt;
    return (size_t)param->id < x->cap_source ? x->source[param->id] : NULL;
}

/* True for nodes that move the numbers of their first source. */
static bool is_move(const ggl_tensor *t) {
    return t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT || t->op == GGL_OP_TRANSPOSE ||
           t->op == GGL_OP_REPEAT || t->op == GGL_OP_CAST || t->op == GGL_OP_PICK;
}

static const char SCALE[] = ".scale", WEIGHT[] = ".weight";

/* Returns the length of NAME in a name NAME<end>; 0: the name ends otherwise. */
static size_t stem_length(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0 ? n - m : 0;
}

/* True if factor is named NAME.scale and weight NAME.weight. */
static bool has_factors_name(const ggl_tensor *factor, const char *weight) {
    const size_t n = stem_length(factor->name, SCALE);
    return n > 0 && n == stem_length(weight, WEIGHT) && memcmp(factor->name, weight, n) == 0;
}

/* Looks for a factor in an expression of weights. False: it is no such expression. */
static bool find_factor(search *s, const ggl_tensor *t) {
    if (!t)
        return true;
    if (s->n_steps++ >= MOST_STEPS)
        return false;
    if (t->op == GGL_OP_WEIGHT) {
        s->factor = !s->factor && stem_length(t->name, SCALE) > 0 ? t : s->factor;
        return true;
    }
    if (t->op == GGL_OP_CONST || t->op == GGL_OP_IOTA)
        return true;
    if (t->op == GGL_OP_PARAM)
        return source_of(s, t) && find_factor(s, source_of(s, t));
    if (is_move(t))
        return find_factor(s, t->src[0]);
    s->alone = false;
    bool ok = t->op >= GGL_OP_ADD && t->op <= GGL_OP_CONCAT;
    for (int k = 0; ok && k < t->n_src; k++)
        ok = find_factor(s, t->src[k]);
    return ok;
}

/* If t depends on weights and constants only (except for the indices of picks), and one of the weights is
 * named NAME.scale, returns that weight. *alone: t has its numbers unchanged (the weight, a view, a pick).
 * NULL if none. */
static const ggl_tensor *factor_in(const arch_eval *ev, const ggl_tensor *t, bool *alone) {
    search s = {.ev = ev, .alone = true};
    const bool ok = find_factor(&s, t);
    *alone = s.alone;
    return ok ? s.factor : NULL;
}

/* Returns the first node for which s->is_it is true: t, or a node that t is computed from by sums,
 * multiplications and moves only. NULL if none. */
static const ggl_tensor *depends(search *s, const ggl_tensor *t) {
    if (!t || s->n_steps++ >= MOST_STEPS)
        return NULL;
    if (s->is_it(s, t))
        return t;
    if (t->op == GGL_OP_PARAM)
        return depends(s, source_of(s, t));
    if (is_move(t))
        return depends(s, t->src[0]);
    const bool linear = t->op == GGL_OP_ADD || t->op == GGL_OP_SUB || t->op == GGL_OP_MUL ||
                        t->op == GGL_OP_DIV || t->op == GGL_OP_SUM || t->op == GGL_OP_CONCAT;
    const ggl_tensor *found = NULL;
    for (int k = 0; linear && k < t->n_src && !found; k++)
        found = depends(s, t->src[k]);
    return found;
}

/* --- factors of weights ----------------------------------------------------------------------- */

/* Returns the weight that a product or lookup of rows reads. */
static ggl_tensor *weight_of(const arch_eval *ev, const ggl_tensor *product) {
    return llm_arch_adapt_weight(ev, product->src[product->op == GGL_OP_LINEAR]);
}

bool llm_arch_adapt_note(arch_eval *ev, ggl_tensor *t, const ggl_tensor *sum) {
    struct arch_adapt *x = ev->adapt;
    ggl_tensor *w = weight_of(ev, t);
    arch_scaling *s = w ? llm_arch_adapt_scaling(ev, w) : NULL;
    if (!s)
        return ev->status == GGL_OK;
    s->n++;
    if (!llm_arch_push(ev, &x->product, &x->cap_product, (size_t)sum->id + 1, sizeof *x->product))
        return false;
    x->product[sum->id] = x->product[t->id] = t; /* t was made before sum */
    return true;
}

static ggl_tensor *product_at(const struct arch_adapt *x, const ggl_tensor *t) {
    return (size_t)t->id < x->cap_product ? x->product[t->id] : NULL;
}

/* Returns the adapted product that t is a view of; NULL: none. */
static ggl_tensor *product_under(const struct arch_adapt *x, ggl_tensor *t) {
    while (t && !product_at(x, t))
        t = t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT || t->op == GGL_OP_TRANSPOSE
                ? t->src[0]
                : NULL;
    return t;
}

static bool is_factor_of(const arch_eval *ev, const ggl_tensor *factor, const ggl_tensor *w) {
    const struct arch_adapt *x = ev->adapt;
    const char *whole = (size_t)w->id < x->cap_scaling ? x->scaling[w->id].whole : NULL;
    return has_factors_name(factor, w->name) || (whole && has_factors_name(factor, whole));
}

static bool is_factors_product(const search *s, const ggl_tensor *t) {
    const ggl_tensor *product = product_at(s->ev->adapt, t);
    return product && is_factor_of(s->ev, s->factor, weight_of(s->ev, product));
}

/* A vector of other length scales the input's elements, and not the weight. */
static bool is_weights_factor(const search *s, const ggl_tensor *t) {
    return t->op == GGL_OP_WEIGHT && is_factor_of(s->ev, t, s->w) &&
           (ggl_count(t) == 1 || (s->w->n_dims == 3 && ggl_count(t) == s->w->ne[2]));
}

/* The node t in place of `from` under the views o of it. */
static ggl_tensor *same_view(arch_eval *ev, arch_place p, const ggl_tensor *o,
                             const ggl_tensor *from, ggl_tensor *t) {
    if (o == from || !t)
        return t;
    ggl_tensor *src = same_view(ev, p, o->src[0], from, t);
    return src ? llm_arch_plain_node(ev, p, o->op, &src, 1, o->num, o->n_num) : NULL;
}

/* Nothing reads t any more, which is no mistake of the descriptor. */
static void forget(arch_eval *ev, const ggl_tensor *t) {
    ev->made[t->id].t = NULL;
}

/* Adds to `all` what the sum adds to the product t, under the views o of the sum. `last`: the sum, or an
 * earlier one of its chain. */
static ggl_tensor *add_again(arch_eval *ev, arch_place p, ggl_tensor *all, const ggl_tensor *t,
                             const ggl_tensor *o, const ggl_tensor *sum, const ggl_tensor *last) {
    if (last == t || !all)
        return all;
    forget(ev, last);
    ggl_tensor *src[2] = {add_again(ev, p, all, t, o, sum, last->src[0]),
                          same_view(ev, p, o, sum, last->src[1])};
    return src[0] && src[1] ? llm_arch_plain_node(ev, p, GGL_OP_ADD, src, 2, NULL, 0) : NULL;
}

/* Returns mul, in which operand k is a view of the adapted product `sum`, with the changes added after
 * the multiplication. NULL: reported. */
static ggl_tensor *changes_after(arch_eval *ev, arch_place p, const ggl_tensor *mul, int k,
                                 const ggl_tensor *sum) {
    ggl_tensor *t = product_at(ev->adapt, sum), *src[2] = {mul->src[0], mul->src[1]};
    const ggl_tensor *view = mul->src[k];
    forget(ev, mul);
    for (const ggl_tensor *o = view; o != sum; o = o->src[0])
        forget(ev, o);
    src[k] = same_view(ev, p, view, sum, t);
    ggl_tensor *all = src[k] ? llm_arch_plain_node(ev, p, GGL_OP_MUL, src, 2, NULL, 0) : NULL;
    return add_again(ev, p, all, t, view, sum, sum);
}

/* Refuses magnitudes of a weight with the factor f: what is measured is the whole weight. False: reported. */
static bool check_magnitudes(arch_eval *ev, arch_place p, const ggl_tensor *w,
                             const ggl_tensor *f) {
    for (size_t i = llm_arch_adapt_changes(ev, w); i > 0; i = ev->adapt->change[i - 1].next) {
        const arch_change *c = &ev->adapt->change[i - 1];
        if (c->scale == 0 || !c->magnitude)
            continue;
        llm_arch_error_hint(
            ev, GGL_UNSUPPORTED, p, NULL,
            "%.200s sets the lengths of the rows of %.200s (.lora_magnitude), which has "
            "the factor %.200s: that is not supported",
            llm_adapter_name(c->adapter), c->pair->name.s, f->name);
        return false;
    }
    return ev->status == GGL_OK;
}

/* Refuses the factor f of the weight w, unless nothing changes w. Returns mul, or NULL. */
static ggl_tensor *refuse_factor(arch_eval *ev, arch_place p, ggl_tensor *mul, ggl_tensor *w,
                                 const ggl_tensor *f) {
    arch_scaling *s = llm_arch_adapt_scaling(ev, w);
    if (!s)
        return NULL;
    s->unknown = true;
    for (size_t i = llm_arch_adapt_changes(ev, w); i > 0; i = ev->adapt->change[i - 1].next) {
        const arch_change *c = &ev->adapt->change[i - 1];
        if (c->scale == 0)
            continue;
        llm_arch_error_hint(
            ev, GGL_UNSUPPORTED, p, "write linear(x, w) * scale",
            "%.200s changes %.200s, whose factor %.200s is used here in another way "
            "than for its product, so it is not known what the change is",
            llm_adapter_name(c->adapter), c->pair->name.s, f->name);
        return NULL;
    }
    return mul;
}

/* Takes a new node. Its operand 1 - k may be the factor of a weight whose product is operand k.
 * Returns the node to use in its place; NULL: reported. */
static ggl_tensor *scaled_product(arch_eval *ev, arch_place p, ggl_tensor *mul, int k) {
    struct arch_adapt *x = ev->adapt;
    bool alone;
    const ggl_tensor *f = factor_in(ev, mul->src[1 - k], &alone);
    if (!f)
        return mul;
    ggl_tensor *sum = product_under(x, mul->src[k]);
    search s = {.ev = ev, .factor = f, .is_it = is_factors_product};
    if (!sum || !is_factors_product(&s, sum)) {
        if (!depends(&s, mul->src[k]))
            return mul;
        for (size_t i = 0; mul && i < x->cap_scaling; i++)
            if (x->scaling[i].w && is_factor_of(ev, f, x->scaling[i].w))
                mul = refuse_factor(ev, p, mul, (ggl_tensor *)x->scaling[i].w, f);
        return mul;
    }
    ggl_tensor *w = weight_of(ev, product_at(x, sum));
    if (!check_magnitudes(ev, p, w, f))
        return NULL;
    arch_scaling *by = &x->scaling[w->id];
    if (!alone || mul->op != GGL_OP_MUL || ggl_count(mul) != ggl_count(mul->src[k]))
        return refuse_factor(ev, p, mul, w, f);
    by->unknown |= by->factor && by->factor != f;
    by->factor = f;
    by->n_scaled++;
    return sum == product_at(x, sum) ? mul : changes_after(ev, p, mul, k, sum);
}

ggl_tensor *llm_arch_adapt_scaled(arch_eval *ev, arch_place p, ggl_tensor *t) {
    ggl_tensor *out = t;
    for (int k = 0; k < 2 && out == t; k++)
        if (k == 0 || t->op == GGL_OP_MUL)
            out = scaled_product(ev, p, t, k);
    return out;
}

ggl_tensor *llm_arch_adapt_check_input(arch_eval *ev, arch_place p, ggl_tensor *t) {
    search s = {.ev = ev, .w = weight_of(ev, t), .is_it = is_weights_factor};
    const ggl_tensor *f = s.w ? depends(&s, llm_arch_before_rotation(ev, t->src[0])) : NULL;
    return f ? refuse_factor(ev, p, t, (ggl_tensor *)s.w, f) : t;
}
