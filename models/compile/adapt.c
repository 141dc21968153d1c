/* Applies adapters (adapter.h) while a descriptor is built. No descriptor knows of them: each node
 * that reads a weight passes through llm_arch_adapted, which, if the weight has a pair, adds what the
 * pair changes. With W' = W + scale * rows * columns:
 *
 *     linear(x, W')    = linear(x, W) + linear(scale * linear(x, columns), rows)
 *     W'[token]        = W[token] + linear(scale * rows[token], columns transposed)
 *
 * If the pair has magnitudes, the sum is then multiplied by what adapt_size.c says; a bias is added last.
 *
 * If a descriptor multiplies the product with W by a tensor NAME.scale, which is a factor of W = NAME.weight,
 * what the pair changes is added after that (adapt_factor.c).
 *
 * A descriptor may also read a part of W, another shape of it, or matrices of a stack that an index
 * chooses. Such a node is left alone, and when a product reads it, the pair is cut in the same way
 * (cut_pair): columns of W are columns of `columns`, rows of W are rows of `rows`. Constants that are made of a small
 * W in other ways, such as biases by distance, are made of W' (constant_with). Any other use of an adapted weight is an
 * error. */
#include "adapt.h"
#include "rotate.h"

/* --- cutting a pair like its weight ----------------------------------------------------------- */

static ggl_tensor *reshaped(arch_eval *ev, arch_place p, ggl_tensor *t, int n, const int64_t *ne) {
    double num[GGL_MAX_DIMS] = {0};
    for (int d = 0; d < n; d++)
        num[d] = (double)ne[d];
    return llm_arch_plain_node(ev, p, GGL_OP_RESHAPE, &t, 1, num, n);
}

/* Cuts a part out of a factor along a dimension. */
static ggl_tensor *split(arch_eval *ev, arch_place p, ggl_tensor *t, int dim, const double *num) {
    return llm_arch_plain_node(ev, p, GGL_OP_SPLIT, &t, 1, (double[]){dim, num[1], num[2]}, 3);
}

/* The change of a part of the weight, along a dimension. */
static bool cut_split(arch_eval *ev, arch_place p, const ggl_tensor *t, arch_change *c) {
    const int dim = (int)t->num[0];
    if (dim == 0)
        c->columns = split(ev, p, c->columns, c->flipped ? 1 : 0, t->num);
    else
        c->rows = split(ev, p, c->rows, dim, t->num);
    if (dim == 2 && c->columns->n_dims == 3)
        c->columns = split(ev, p, c->columns, 2, t->num);
    if (dim != 0 && c->size && !(c->size = split(ev, p, c->size, dim - 1, t->num)))
        return false;
    return c->rows && c->columns;
}

/* The change of the weight in another shape, which keeps the rows' length. */
static bool cut_reshape(arch_eval *ev, arch_place p, const ggl_tensor *t, arch_change *c) {
    int64_t ne[GGL_MAX_DIMS] = {c->rows->ne[0], t->ne[1], t->ne[2], t->ne[3]};
    const ggl_tensor *from = t->src[0];
    if (t->ne[0] != from->ne[0] || t->n_dims < 2)
        return false;
    /* a stack stays one, or has a single matrix */
    const bool stack = c->columns->n_dims == 3;
    if (stack && (t->ne[1] != from->ne[1] || t->ne[2] != from->ne[2]))
        return false;
    c->rows = reshaped(ev, p, c->rows, t->n_dims, ne);
    if (stack && t->n_dims == 2)
        c->columns = reshaped(ev, p, c->columns, 2, c->columns->ne);
    if (c->size && !(c->size = reshaped(ev, p, c->size, t->n_dims - 1, &ne[1])))
        return false;
    return c->rows && c->columns;
}

/* The changes of the matrices that an index chooses from a stack. */
static bool cut_gather(arch_eval *ev, arch_place p, const ggl_tensor *t, arch_change *c) {
    ggl_tensor *rows[2] = {c->rows, t->src[1]}, *columns[2] = {c->columns, t->src[1]};
    if (c->columns->n_dims == 3)
        c->columns = llm_arch_plain_node(ev, p, GGL_OP_PICK, columns, 2, NULL, 0);
    c->rows = llm_arch_plain_node(ev, p, GGL_OP_PICK, rows, 2, NULL, 0);
    ggl_tensor *size[2] = {c->size, t->src[1]};
    if (c->size && !(c->size = llm_arch_plain_node(ev, p, GGL_OP_PICK, size, 2, NULL, 0)))
        return false;
    return c->rows && c->columns;
}

/* Turns *c, the change of a weight, into that of t, which is cut from it. False: t has no such
 * change, or ev has an error. */
static bool cut_pair(arch_eval *ev, arch_place p, const ggl_tensor *t, arch_change *c) {
    if (t->op == GGL_OP_WEIGHT)
        return true;
    if (t->op == GGL_OP_PARAM)
        return cut_pair(ev, p, ev->adapt->source[t->id], c);
    return cut_pair(ev, p, t->src[0], c) && (t->op == GGL_OP_SPLIT     ? cut_split(ev, p, t, c)
                                             : t->op == GGL_OP_RESHAPE ? cut_reshape(ev, p, t, c)
                                                                       : cut_gather(ev, p, t, c));
}

/* --- nodes ------------------------------------------------------------------------------------ */

static ggl_tensor *scaled(arch_eval *ev, arch_place p, ggl_tensor *t, double scale) {
    ggl_tensor *src[2] = {t, scale != 1 && t ? ggl_graph_number(ev->g, scale) : NULL};
    return src[1] ? llm_arch_plain_node(ev, p, GGL_OP_MUL, src, 2, NULL, 0) : t;
}

/* Multiplies t by the scale, and by the token's share of the change's task. The two are multiplied first, as llm_batch.share says: a share is a
 * scale. */
static ggl_tensor *weighed(arch_eval *ev, arch_place p, ggl_tensor *t, const arch_change *c,
                           double scale) {
    if (c->task == 0 || !t)
        return scaled(ev, p, t, scale);
    if (ev->arch->has_tokens && ev->n_stages > 0) {
        llm_arch_error(ev, p,
                       "%.200s is for a task, which a model with a text that is read before it "
                       "writes cannot choose",
                       llm_adapter_name(c->adapter));
        return NULL;
    }
    arch_share *last = &ev->adapt->share[c->task - 1];
    ggl_tensor *share = last->t && last->scale == scale && t->scope == 0 ? last->t : NULL;
    if (!share) {
        share = split(ev, p, ev->adapt->task, 0, (double[]){0, c->task - 1, 1});
        share = scaled(ev, p, share, scale);
        if (share && share->scope == 0) /* all may read it */
            *last = (arch_share){share, scale};
    }
    ggl_tensor *src[2] = {t, share};
    return share ? llm_arch_plain_node(ev, p, GGL_OP_MUL, src, 2, NULL, 0) : NULL;
}

/* Returns linear(x, w) without a bias. */
static ggl_tensor *product(arch_eval *ev, arch_place p, ggl_tensor *x, ggl_tensor *w) {
    ggl_tensor *src[3] = {x, w, NULL};
    return x && w ? llm_arch_plain_node(ev, p, GGL_OP_LINEAR, src, 3, NULL, 0) : NULL;
}

/* Finds a node made before in the same body, for example columns * x, which the parts of a fused
 * tensor share. */
static ggl_tensor *find_shared(const arch_eval *ev, const arch_shared *want) {
    const struct arch_adapt *x = ev->adapt;
    for (size_t i = x->n_shared; i-- > 0 && i + 16 >= x->n_shared;)
        if (x->shared[i].x == want->x && x->shared[i].columns == want->columns &&
            x->shared[i].scope == want->scope && x->shared[i].scale == want->scale)
            return x->shared[i].t;
    return NULL;
}

static ggl_tensor *share(arch_eval *ev, arch_shared s, ggl_tensor *t) {
    struct arch_adapt *x = ev->adapt;
    if (!t || !llm_arch_push(ev, &x->shared, &x->cap_shared, x->n_shared + 1, sizeof *x->shared))
        return NULL;
    s.t = t;
    x->shared[x->n_shared++] = s;
    return t;
}

/* The columns of a change as [rank, in] if `flipped`, else as [in, rank]. */
static ggl_tensor *columns_as(arch_eval *ev, arch_place p, const arch_change *c, bool flipped,
                              int scope) {
    if (c->flipped == flipped)
        return c->columns;
    const arch_shared s = {.columns = c->columns, .scope = scope};
    ggl_tensor *t = find_shared(ev, &s), *from = c->columns;
    return t ? t
             : share(ev, s,
                     llm_arch_plain_node(ev, p, GGL_OP_TRANSPOSE, &from, 1, (double[]){0, 1}, 2));
}

/* scale * columns * x, of rank numbers */
static ggl_tensor *inner(arch_eval *ev, arch_place p, const arch_change *c, ggl_tensor *x,
                         int scope) {
    const arch_shared s = {.x = x, .columns = c->columns, .scale = c->scale, .scope = scope};
    ggl_tensor *t = find_shared(ev, &s);
    if (t)
        return t;
    t = product(ev, p, x, columns_as(ev, p, c, false, scope));
    return share(ev, s, weighed(ev, p, t, c, c->scale));
}

/* Reports that the node t reads an adapted weight in a way that has no low-rank change. */
static ggl_tensor *refuse_use(arch_eval *ev, arch_place p, const ggl_tensor *t,
                              const arch_change *c) {
    llm_arch_error_hint(
        ev, GGL_UNSUPPORTED, p, NULL,
        "%.200s changes %.200s, which is used here in %s: only products and lookups "
        "of rows can be adapted",
        llm_adapter_name(c->adapter), c->pair->name.s, t->call ? t->call : ggl_op_get(t->op).name);
    return NULL;
}

/* Reports that magnitudes cannot be applied where the weight is used. */
static ggl_tensor *refuse_magnitude(arch_eval *ev, arch_place p, const arch_change *c,
                                    const char *where) {
    llm_arch_error_hint(ev, GGL_UNSUPPORTED, p, NULL,
                        "%.200s sets the lengths of the rows of %.200s (.lora_magnitude), which is "
                        "used here %s: only products can be adapted so",
                        llm_adapter_name(c->adapter), c->pair->name.s, where);
    return NULL;
}

/* Returns what the change c of the weight adds to the node t, a product or a lookup of rows; c is cut as t's weight. NULL: nothing
 * can be added, or ev has an error. */
static ggl_tensor *addend(arch_eval *ev, arch_place p, const ggl_tensor *t, arch_change *c) {
    ggl_tensor *before = (ggl_tensor *)llm_arch_before_rotation(ev, t->src[0]);
    if (t->op == GGL_OP_LINEAR)
        return cut_pair(ev, p, t->src[1], c)
                   ? product(ev, p, inner(ev, p, c, before, t->scope), c->rows)
                   : NULL;
    if (!cut_pair(ev, p, t->src[0], c) || c->rows->n_dims != 2)
        return NULL;
    ggl_tensor *src[2] = {c->rows, t->src[1]};
    ggl_tensor *row = llm_arch_plain_node(ev, p, GGL_OP_PICK, src, 2, NULL, 0);
    row = row ? weighed(ev, p, row, c, c->scale) : NULL;
    return row ? product(ev, p, row, columns_as(ev, p, c, true, t->scope)) : NULL;
}

static ggl_tensor *both(arch_eval *ev, arch_place p, ggl_op op, ggl_tensor *a, ggl_tensor *b) {
    ggl_tensor *src[2] = {a, b};
    return a && b ? llm_arch_plain_node(ev, p, op, src, 2, NULL, 0) : NULL;
}

/* Returns the product y with the addend of the change c, whose rows have lengths of c's own if it has sizes. NULL: reported.
 *
 * Of a task, size * (y + addend) is written as y + ((size - 1) * (y - bias) + size * addend), of which all but y is times the element's share of the task:
 * so the bits of other elements do not depend on it. bias: what y contains of it; else NULL. */
static ggl_tensor *with_addend(arch_eval *ev, arch_place p, ggl_tensor *y, ggl_tensor *bias,
                               ggl_tensor *addend, const arch_change *c) {
    if (!c->size || c->task == 0) {
        y = both(ev, p, GGL_OP_ADD, y, addend);
        return c->size ? both(ev, p, GGL_OP_MUL, y, c->size) : y;
    }
    ggl_tensor *more = both(ev, p, GGL_OP_SUB, c->size, ggl_graph_number(ev->g, 1));
    more = weighed(ev, p, more, c, 1);
    more = both(ev, p, GGL_OP_MUL, bias ? both(ev, p, GGL_OP_SUB, y, bias) : y, more);
    more = both(ev, p, GGL_OP_ADD, more, both(ev, p, GGL_OP_MUL, addend, c->size));
    return both(ev, p, GGL_OP_ADD, y, more);
}

/* Returns y with the change x->change[i] of the weight of t, which y is made of. NULL: reported. */
static ggl_tensor *changed(arch_eval *ev, arch_place p, ggl_tensor *y, const ggl_tensor *t,
                           size_t i) {
    arch_change *whole = &ev->adapt->change[i];
    const char *where = t->op != GGL_OP_LINEAR              ? "for its rows"
                        : t->scope != 0                     ? "in the body of an op"
                        : whole->w->n_dims > 3              ? "as a tensor of four dimensions"
                        : llm_arch_is_rotated(ev, whole->w) ? "rotated, as it is stored"
                                                            : NULL;
    if (whole->magnitude && where)
        return refuse_magnitude(ev, p, whole, where);
    if (whole->magnitude && !llm_arch_adapt_size(ev, p, whole))
        return NULL;
    arch_change c = *whole;
    ggl_tensor *more = addend(ev, p, t, &c);
    if (!more)
        return ev->status == GGL_OK ? refuse_use(ev, p, t, &c) : NULL;
    return with_addend(ev, p, y, t->op == GGL_OP_LINEAR ? t->src[2] : NULL, more, &c);
}

/* True for one row of a matrix, which is not looked up by an index of the batch: token_types[0]. */
static bool is_row(const ggl_tensor *t) {
    const ggl_tensor *from = t->op == GGL_OP_RESHAPE && t->n_dims == 1 ? t->src[0] : NULL;
    return from && from->op == GGL_OP_SPLIT && (int)from->num[0] == 1 && from->num[2] == 1 &&
           from->n_dims == 2;
}

/* Returns what the change c of the weight adds to one of its rows. NULL: as of addend. */
static ggl_tensor *row_addend(arch_eval *ev, arch_place p, const ggl_tensor *t, arch_change c,
                              int scope) {
    if (c.magnitude)
        return refuse_magnitude(ev, p, &c, "for a row");
    if (!cut_pair(ev, p, t->src[0], &c) || c.rows->n_dims != 2)
        return NULL;
    ggl_tensor *row = reshaped(ev, p, c.rows, 1, c.rows->ne);
    row = row ? weighed(ev, p, row, &c, c.scale) : NULL;
    return row ? product(ev, p, row, columns_as(ev, p, &c, true, scope)) : NULL;
}

/* t is a sum of which src[k] is a row with changes, the first at `first`: adds these to `sum`. */
static ggl_tensor *add_to_row(arch_eval *ev, arch_place p, ggl_tensor *sum, const ggl_tensor *t,
                              int k, size_t first) {
    const struct arch_adapt *x = ev->adapt;
    for (size_t i = first; i > 0 && sum; i = x->change[i - 1].next) {
        const arch_change c = x->change[i - 1];
        if (c.scale == 0)
            continue;
        ggl_tensor *src[2] = {sum, row_addend(ev, p, t->src[k], c, t->scope)};
        sum = src[1] ? llm_arch_plain_node(ev, p, GGL_OP_ADD, src, 2, NULL, 0) : NULL;
    }
    return sum;
}

/* --- constants -------------------------------------------------------------------------------- */

enum { MOST_WHOLE = 1 << 24 }; /* numbers of a W' that is made as a whole */

/* Returns W' as a whole for the weight w with changes, the first at `first`; NULL: ev has an error, or one of them has no such form. */
static ggl_tensor *whole(arch_eval *ev, arch_place p, ggl_tensor *w, size_t first, int scope) {
    const struct arch_adapt *x = ev->adapt;
    ggl_tensor *sum = w;
    for (size_t i = first; i > 0 && sum; i = x->change[i - 1].next) {
        arch_change c = x->change[i - 1];
        if (c.scale == 0)
            continue;
        if (c.magnitude)
            return refuse_magnitude(ev, p, &c, "in a constant");
        if (c.task != 0 || !cut_pair(ev, p, w, &c) || c.rows->n_dims != 2 || c.columns->n_dims != 2)
            return NULL;
        ggl_tensor *columns = columns_as(ev, p, &c, true, scope);
        ggl_tensor *src[2] = {sum, product(ev, p, scaled(ev, p, c.rows, c.scale), columns)};
        sum = src[1] ? llm_arch_plain_node(ev, p, GGL_OP_ADD, src, 2, NULL, 0) : NULL;
    }
    return sum;
}

/* True if source k of t is a whole weight that t, a constant, reads otherwise than as its matrix or table: such a t can be made of W'. */
static bool is_read_whole(const ggl_tensor *t, int k, int place) {
    const ggl_tensor *w = t->src[k];
    return !ggl_is_batched(t) && t->op != GGL_OP_CALL && k != place && w->n_dims == 2 &&
           (w->op == GGL_OP_WEIGHT || w->op == GGL_OP_PARAM) && ggl_count(w) <= MOST_WHOLE;
}

/* True if a change of the list that begins at `first`, and is of no task, has magnitudes and a scale other than 0. */
static bool has_magnitude(const arch_eval *ev, size_t first) {
    bool has = false;
    for (size_t i = first; i > 0; i = ev->adapt->change[i - 1].next)
        has |= ev->adapt->change[i - 1].scale != 0 && ev->adapt->change[i - 1].magnitude &&
               ev->adapt->change[i - 1].task == 0;
    return has;
}

/* True if a change of the list that begins at `first` has a scale other than 0. */
static bool has_effect(const arch_eval *ev, size_t first) {
    bool has = false;
    for (size_t i = first; i > 0; i = ev->adapt->change[i - 1].next)
        has |= ev->adapt->change[i - 1].scale != 0;
    return has;
}

/* Returns t, made of the changed weights if it is a constant that reads some as a whole. NULL: ev has an error. */
static ggl_tensor *constant_with(arch_eval *ev, arch_place p, ggl_tensor *t, int place) {
    ggl_tensor *src[4] = {NULL};
    bool changed = false;
    for (int k = 0; k < t->n_src && k < 4; k++) {
        src[k] = t->src[k];
        const size_t at =
            src[k] && is_read_whole(t, k, place) ? llm_arch_adapt_changes(ev, src[k]) : 0;
        ggl_tensor *w = at && ev->status == GGL_OK ? whole(ev, p, src[k], at, t->scope) : NULL;
        if (ev->status != GGL_OK)
            return NULL;
        changed |= w && w != src[k];
        src[k] = w ? w : src[k];
    }
    if (!changed)
        return t;
    ggl_tensor *made = llm_arch_plain_node(ev, p, t->op, src, t->n_src, t->num, t->n_num);
    return made && llm_arch_add_edge(ev, made, t) ? made : NULL;
}

/* --- adapted nodes ---------------------------------------------------------------------------- */

ggl_tensor *llm_arch_adapted(arch_eval *ev, arch_place p, ggl_tensor *t, ggl_tensor *in_place) {
    struct arch_adapt *x = ev->adapt;
    if (!x || arch_is_cut(t))
        return in_place;
    const bool is_turned =
        in_place != t; /* factors of such a table (adapt_factor.c) are not looked for */
    if (t->op == GGL_OP_MUL || t->op == GGL_OP_DIV)
        t = llm_arch_adapt_scaled(ev, p, t);
    if (t && t->op == GGL_OP_LINEAR)
        t = llm_arch_adapt_check_input(ev, p, t);
    if (!t)
        return NULL;
    const int place = t->op == GGL_OP_LINEAR ? 1 : t->op == GGL_OP_PICK ? 0 : -1;
    if (!(t = constant_with(ev, p, t, place)))
        return NULL;
    size_t first = 0;
    ggl_tensor *sum = is_turned ? in_place : t;
    for (int k = 0; k < t->n_src; k++) {
        const size_t at = t->src[k] ? llm_arch_adapt_changes(ev, t->src[k]) : 0;
        if (at && ev->status == GGL_OK && t->op == GGL_OP_ADD && is_row(t->src[k])) {
            if (!(sum = add_to_row(ev, p, sum, t, k, at)))
                return NULL;
            continue;
        }
        if (at && is_read_whole(t, k, place) && !has_effect(ev, at))
            continue;
        if (ev->status != GGL_OK || (at && k != place))
            return at ? refuse_use(ev, p, t, &x->change[at - 1]) : NULL;
        first = at ? at : first;
    }
    ggl_tensor *bias = NULL; /* which no magnitude changes */
    if (t->op == GGL_OP_LINEAR && has_magnitude(ev, first) && t->src[2]) {
        bias = t->src[2];
        sum = product(ev, p, t->src[0], t->src[1]);
        if (!sum || !llm_arch_add_edge(ev, sum, t))
            return NULL;
        t = sum;
    }
    for (size_t i = first; i > 0; i = x->change[i - 1].next)
        if (x->change[i - 1].scale != 0 && !(sum = changed(ev, p, sum, t, i - 1)))
            return NULL;
    ggl_tensor *src[2] = {sum, bias};
    if (bias && !(sum = llm_arch_plain_node(ev, p, GGL_OP_ADD, src, 2, NULL, 0)))
        return NULL;
    return place < 0 || is_turned || llm_arch_adapt_note(ev, t, sum) ? sum : NULL;
}
