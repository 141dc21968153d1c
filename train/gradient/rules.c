/* The rules of gradients.def: the table, and those that are no texts. */
#include <math.h>
#include <string.h>

#include "gradient_impl.h"

/* --- moves ------------------------------------------------------------------------------------ */

void ggl_grad_split(grad_work *w, ggl_tensor *t, ggl_tensor *dy) {
    ggl_grad_add_part(w, t->src[SPLIT_X], (int)t->num[SPLIT_DIM], (int64_t)t->num[SPLIT_FIRST], dy);
}

/* Returns elements first .. first + size - 1 of d along dim. */
static ggl_tensor *part_of(grad_work *w, ggl_tensor *d, int dim, int64_t first, int64_t size) {
    const double num[] = {dim, (double)first, (double)size};
    return grad_op1(w, GGL_OP_SPLIT, d, num, 3);
}

void ggl_grad_concat(grad_work *w, ggl_tensor *t, ggl_tensor *dy) {
    const int dim = (int)t->num[CONCAT_DIM];
    int64_t first = 0;
    for (int k = 0; k < 2; k++) {
        ggl_tensor *x = t->src[k];
        if (ggl_grad_is_active(w, x))
            ggl_grad_add(w, t, x, part_of(w, dy, dim, first, x->ne[dim]));
        first += x->ne[dim];
    }
}

/* [m, k] of what t[i] picks from [m, n]: an index for each of the k, of one for all. */
static ggl_tensor *flat_picks(grad_work *w, const ggl_tensor *t, ggl_tensor *dy) {
    const ggl_tensor *i = t->src[PICK_I];
    const int64_t k = i->n_dims ? i->ne[0] : 1, ne[2] = {ggl_count(t) / k, k};
    return ggl_grad_reshape(w, dy, 2, ne);
}

/* Of a table that is the same for all of the batch: rows are added where they came from. Of one of each element: each number gets
 * those whose index is its own. */
void ggl_grad_pick(grad_work *w, ggl_tensor *t, ggl_tensor *dy) {
    ggl_graph *g = w->g;
    ggl_tensor *table = t->src[PICK_T], *i = t->src[PICK_I];
    const int64_t n = table->ne[table->n_dims - 1], m = ggl_count(table) / n;
    ggl_tensor *d = flat_picks(w, t, dy);
    if (!d)
        return;
    const int64_t k = d->ne[1];
    if (!ggl_is_batched(table) && !w->in_body) {
        const double one = 1;
        const int64_t ne[3] = {m, 1, n}, only = 1;
        ggl_grad_outer(w, table, d, ggl_graph_const(g, 1, &only, &one), i, n, 3, ne, false);
        return;
    }
    const double count = (double)n;
    ggl_tensor *places = ggl_graph_op(g, GGL_OP_IOTA, NULL, 0, &count, 1);
    ggl_tensor *chosen = ggl_unary(g, GGL_OP_CAST, i);
    places = places ? ggl_grad_reshape(w, places, 3, (const int64_t[]){1, n, 1}) : NULL;
    chosen = chosen ? ggl_grad_reshape(w, chosen, 3, (const int64_t[]){1, 1, k}) : NULL;
    chosen = chosen && places ? ggl_binary(g, GGL_OP_EQ, places, chosen) : NULL;
    d = chosen ? ggl_grad_reshape(w, d, 3, (const int64_t[]){m, 1, k}) : NULL;
    d = d ? ggl_binary(g, GGL_OP_MUL, d, chosen) : NULL;
    const double last = 2;
    d = d && k > 1 ? grad_op1(w, GGL_OP_SUM, d, &last, 1) : d;
    ggl_grad_add(w, t, table, d ? ggl_grad_reshape(w, d, table->n_dims, table->ne) : NULL);
}

/* --- products --------------------------------------------------------------------------------- */

/* Of matrices that are computed for each element of the batch: x[i] dy[j], number by number. */
static ggl_tensor *outer_of_each(grad_work *w, const ggl_tensor *t, ggl_tensor *x, ggl_tensor *dy) {
    if (t->ne[2] > 1)
        return ggl_graph_fail(
            w->g, GGL_UNSUPPORTED,
            "the gradient of %s by matrices of each element, with columns of three "
            "dimensions",
            ggl_node_text(t, (char[128]){0}, 128));
    ggl_tensor *a = ggl_grad_reshape(w, x, 3, (const int64_t[]){x->ne[0], 1, x->ne[1]});
    ggl_tensor *b = ggl_grad_reshape(w, dy, 3, (const int64_t[]){1, dy->ne[0], dy->ne[1]});
    return a && b ? ggl_binary(w->g, GGL_OP_MUL, a, b) : NULL;
}

/* True if gradients of products with the matrix m are products of bf16. */
static bool in_bf16(const grad_work *w, const ggl_tensor *m) {
    return w->bf16 && !ggl_is_batched(m) && m->ne[0] >= GGL_GRAD_BF16_SIDE &&
           m->ne[1] >= GGL_GRAD_BF16_SIDE;
}

/* The gradient by the matrix or matrices of t. */
static void by_matrix(grad_work *w, ggl_tensor *t, ggl_tensor *dy) {
    ggl_tensor *x = ggl_grad_value(w, t->src[LINEAR_X]), *m = t->src[LINEAR_W];
    if (m->gather) {
        ggl_tensor *stack = m->src[PICK_T];
        if (x && dy && stack->n_dims == 3 && ggl_grad_is_active(w, stack))
            ggl_grad_outer(w, stack, x, dy, ggl_grad_value(w, m->src[PICK_I]), stack->ne[2], 3,
                           stack->ne, in_bf16(w, stack));
    } else if (ggl_is_batched(m) || w->in_body) {
        ggl_grad_add(w, t, m, x ? outer_of_each(w, t, x, dy) : NULL);
    } else if (m->n_dims > 3) {
        ggl_graph_fail(w->g, GGL_UNSUPPORTED, "the gradient of %s by matrices of four dimensions",
                       ggl_node_text(t, (char[128]){0}, 128));
    } else {
        ggl_grad_outer(w, m, x, dy, NULL, m->ne[2] > 1 ? m->ne[2] : 0, m->ne[2] > 1 ? 3 : 2, m->ne,
                       in_bf16(w, m));
    }
}

void ggl_grad_linear(grad_work *w, ggl_tensor *t, ggl_tensor *dy) {
    ggl_tensor *x = t->src[LINEAR_X], *m = t->src[LINEAR_W], *bias = t->src[LINEAR_BIAS];
    ggl_tensor *src[2] = {dy, ggl_grad_value(w, m)};
    const bool from_stack = m->gather && ggl_grad_is_active(w, m->src[PICK_T]);
    const double bf16 = in_bf16(w, m->gather ? m->src[PICK_T] : m);
    if (bias && ggl_grad_is_active(w, bias))
        ggl_grad_add(w, t, bias, dy);
    if (ggl_grad_is_active(w, m) || from_stack)
        by_matrix(w, t, dy);
    if (ggl_grad_is_active(w, x))
        ggl_grad_add(w, t, x, ggl_graph_op(w->g, GGL_OP_LINEAR_BACK, src, 2, &bf16, 1));
}

/* --- attention -------------------------------------------------------------------------------- */

/* Returns why attend_back cannot compute t's gradient, or NULL. */
static const char *attend_fault(grad_work *w, const ggl_tensor *t) {
    const ggl_tensor *kv = t->src[ATTEND_KV];
    return ggl_grad_is_active(w, t->src[ATTEND_ALIBI]) ? "slopes have no gradient yet"
           : t->src[ATTEND_CHOSEN] ? "attention to chosen rows has no gradient yet: texts as long "
                                     "as the number of rows that are chosen have"
           : kv->rows != t->rows   ? "what is read is of other runs: the rows of a stage"
           : !ggl_is_batched(kv->src[CACHE_K]) || !ggl_is_batched(kv->src[CACHE_V]) ||
                   !ggl_is_batched(t->src[ATTEND_Q])
               ? "queries, keys and values must be of each element of the batch"
               : NULL;
}

/* Returns [n, groups * per] as [n, groups, per], or back: the columns of a product with a matrix for each group. */
static ggl_tensor *by_groups(grad_work *w, ggl_tensor *x, int64_t groups, int64_t per, bool back) {
    const int64_t n = x ? x->ne[0] : 0;
    if (x && !back)
        x = ggl_grad_reshape(w, x, 3, (const int64_t[]){n, per, groups});
    if (x && per > 1)
        x = grad_op1(w, GGL_OP_TRANSPOSE, x, (const double[]){1, 2}, 2);
    else if (x)
        x = ggl_grad_reshape(w, x, 3, (const int64_t[]){n, groups, 1});
    return x && back ? ggl_grad_reshape(w, x, 2, (const int64_t[]){n, groups * per}) : x;
}

/* Rows of relative positions that an attention multiplies its queries or keys with: an ordinary product with a matrix, whose
 * numbers attend_back reads, and of which it computes the gradient. */
typedef struct relative {
    ggl_tensor *x, *table; /* x: [d, heads]; table: [d, n], or [d, n, groups] */
    ggl_tensor *of;        /* x's values, by groups if the table has a matrix for each */
    int64_t groups, per;
} relative;

/* Returns the products [n, heads]; NULL: there is no table, or an error. */
static ggl_tensor *relative_products(grad_work *w, relative *r, ggl_tensor *x, ggl_tensor *table) {
    if (!table)
        return NULL;
    *r = (relative){.x = x, .table = table, .groups = table->ne[2], .per = x->ne[1] / table->ne[2]};
    r->of = ggl_grad_value(w, x);
    if (r->groups > 1)
        r->of = by_groups(w, r->of, r->groups, r->per, false);
    ggl_tensor *y = r->of ? ggl_linear(w->g, r->of, ggl_grad_value(w, table), NULL) : NULL;
    return r->groups > 1 ? by_groups(w, y, r->groups, r->per, true) : y;
}

/* Adds the gradients by x and the table; dy: that of the products. */
static void add_relative(grad_work *w, const relative *r, const ggl_tensor *reader,
                         ggl_tensor *dy) {
    if (r->groups > 1)
        dy = by_groups(w, dy, r->groups, r->per, false);
    ggl_tensor *src[2] = {dy, ggl_grad_value(w, r->table)};
    if (ggl_grad_is_active(w, r->table))
        ggl_grad_outer(w, r->table, r->of, dy, NULL, r->groups > 1 ? r->groups : 0,
                       r->groups > 1 ? 3 : 2, r->table->ne, false);
    if (!dy || !ggl_grad_is_active(w, r->x))
        return;
    ggl_tensor *dx = ggl_graph_op(w->g, GGL_OP_LINEAR_BACK, src, 2, NULL, 0);
    if (r->groups > 1)
        dx = by_groups(w, dx, r->groups, r->per, true);
    ggl_grad_add(w, reader, r->x, dx ? ggl_grad_reshape(w, dx, r->x->n_dims, r->x->ne) : NULL);
}

/* The keys and values are those of the batch, which holds whole sequences. */
void ggl_grad_attend(grad_work *w, ggl_tensor *t, ggl_tensor *dy) {
    const char *fault = attend_fault(w, t);
    if (fault) {
        ggl_graph_fail(w->g, GGL_UNSUPPORTED, "the gradient of %s: %s",
                       ggl_node_text(t, (char[128]){0}, 128), fault);
        return;
    }
    ggl_tensor *q = t->src[ATTEND_Q], *k = t->src[ATTEND_KV]->src[CACHE_K],
               *v = t->src[ATTEND_KV]->src[CACHE_V], *sinks = t->src[ATTEND_SINKS],
               *bias = t->src[ATTEND_BIAS],
               *of[5] = {q, k, v, sinks, ggl_grad_is_active(w, bias) ? bias : NULL};
    const double num[] = {[ATTEND_BACK_SCALE] = t->num[ATTEND_SCALE],
                          [ATTEND_BACK_WINDOW] = t->num[ATTEND_WINDOW],
                          [ATTEND_BACK_CAP] = t->num[ATTEND_CAP],
                          [ATTEND_BACK_BY_BIAS] = of[4] != NULL};
    relative rel[2];
    ggl_tensor *products[2] = {relative_products(w, &rel[0], q, t->src[ATTEND_REL_K]),
                               relative_products(w, &rel[1], k, t->src[ATTEND_REL_Q])};
    ggl_tensor *src[11] = {ggl_grad_value(w, q),
                           ggl_grad_value(w, k),
                           ggl_grad_value(w, v),
                           dy,
                           ggl_grad_value(w, sinks),
                           t->src[ATTEND_ALIBI],
                           ggl_grad_value(w, bias),
                           ggl_grad_value(w, t->src[ATTEND_WITHIN]),
                           products[0],
                           products[1],
                           t->src[ATTEND_REL_ROW]};
    ggl_tensor *all = ggl_graph_op(w->g, GGL_OP_ATTEND_BACK, src, 11, num, 4);
    int64_t first = 0;
    for (int i = 0; i < 5 && all; i++) {
        if (!of[i])
            continue;
        const int64_t n = ggl_count(of[i]);
        ggl_tensor *d = ggl_grad_is_active(w, of[i]) ? part_of(w, all, 0, first, n) : NULL;
        if (d)
            ggl_grad_add(w, t, of[i], ggl_grad_reshape(w, d, of[i]->n_dims, of[i]->ne));
        first += n;
    }
    for (int i = 0; i < 2 && all; i++) {
        if (!products[i])
            continue;
        const int64_t n = ggl_count(products[i]);
        ggl_tensor *d = part_of(w, all, 0, first, n);
        if (d)
            add_relative(w, &rel[i], t,
                         ggl_grad_reshape(w, d, products[i]->n_dims, products[i]->ne));
        first += n;
    }
}

/* --- the table -------------------------------------------------------------------------------- */

static const grad_rule of_operator[GGL_OP_COUNT] = {
#define GRADIENT(ID, text_)       [GGL_OP_##ID] = {.kind = GRAD_TEXT, .text = text_},
#define GRADIENT_BY(ID, function) [GGL_OP_##ID] = {.kind = GRAD_BY, .by = ggl_grad_##function},
#define FLAT(ID)                  [GGL_OP_##ID] = {.kind = GRAD_FLAT},
#define NO_GRADIENT(ID, why)      [GGL_OP_##ID] = {.kind = GRAD_NONE, .text = why},
#include "gradients.def"
};

static const struct {
    const char *name;
    grad_rule rule;
} of_composite[] = {
#define GRADIENT_OF(name, signature_, text_)                                                       \
    {name, {.kind = GRAD_TEXT, .text = text_, .signature = signature_}},
#define FLAT_OF(name) {name, {.kind = GRAD_FLAT}},
#include "gradients.def"
};

const grad_rule *ggl_grad_rule_of(const ggl_tensor *t) {
    if (t->op != GGL_OP_CALL)
        return &of_operator[t->op];
    for (size_t i = 0; t->call && i < sizeof of_composite / sizeof *of_composite; i++)
        if (strcmp(of_composite[i].name, t->call) == 0)
            return &of_composite[i].rule;
    return NULL;
}
