#include "ggl/internal/divide.h"

#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"
#include "graph_impl.h"

typedef struct divider {
    ggl_graph *g;
    const double *share;
    int n_parts;
    size_t least;
    int64_t unit;
    node_list nodes; /* the graph's new ones */
    ggl_tensor *
        *made; /* [id of a leaf of the graph][part]: its rows, which several products may read */
    int n_ids;
    int n_divided;
} divider;

static bool push(divider *d, ggl_tensor *t) {
    if (!ggl_grow(&d->nodes.at, &d->nodes.cap, d->nodes.n + 1, sizeof *d->nodes.at))
        return ggl_graph_fail(d->g, GGL_NOMEM, "out of memory for parts of products") != NULL;
    d->nodes.at[d->nodes.n++] = t;
    return true;
}

/* A tensor with the extents and the place of `like`; NULL: out of memory. */
static ggl_tensor *tensor_like(divider *d, const ggl_tensor *like, ggl_op op, int n_src,
                               int n_num) {
    ggl_tensor *t = ggl_arena_alloc(&d->g->arena, 1, sizeof *t);
    ggl_tensor **src = ggl_arena_alloc(&d->g->arena, (size_t)n_src + 1, sizeof *src);
    double *num = ggl_arena_alloc(&d->g->arena, (size_t)n_num + 1, sizeof *num);
    if (!t || !src || !num)
        return ggl_graph_fail(d->g, GGL_NOMEM, "out of memory for parts of products");
    *t = (ggl_tensor){.op = op,
                      .type = like->type,
                      .id = d->g->n_ids++,
                      .n_dims = like->n_dims,
                      .group = like->group,
                      .origin = like->origin,
                      .src = src,
                      .n_src = n_src,
                      .num = num,
                      .n_num = n_num,
                      .rows = like->rows,
                      .needed = true};
    memcpy(t->ne, like->ne, sizeof t->ne);
    return t;
}

/* The rows first .. first + n - 1 of a weight, or elements of a row of numbers: a leaf of its own. NULL: out of memory. */
static ggl_tensor *rows_of(divider *d, const ggl_tensor *w, int part, int64_t first, int64_t n) {
    ggl_tensor **made =
        w->id < d->n_ids ? &d->made[(size_t)w->id * (size_t)d->n_parts + (size_t)part] : NULL;
    if (made && *made)
        return *made;
    ggl_tensor *t = tensor_like(d, w, w->op, 0, 0);
    const int dim = w->n_dims - 1;
    if (!t)
        return NULL;
    if (made)
        *made = t;
    t->ne[dim] = n;
    t->size = w->size / (size_t)w->ne[dim] * (size_t)n;
    t->data = (const char *)w->data + w->size / (size_t)w->ne[dim] * (size_t)first;
    if (w->name &&
        !(t->name = ggl_arena_printf(&d->g->arena, "%s%c%d", w->name, GGL_PART_MARK, part)))
        return ggl_graph_fail(d->g, GGL_NOMEM, "out of memory for parts of products");
    ggl_facts_init(t);
    return push(d, t) ? t : NULL;
}

static bool is_divisible(const divider *d, const ggl_tensor *t) {
    if (t->op != GGL_OP_LINEAR || !t->needed || !ggl_is_batched(t))
        return false;
    const ggl_tensor *w = t->src[LINEAR_W], *bias = t->src[LINEAR_BIAS];
    return w->op == GGL_OP_WEIGHT && w->n_dims == 2 && w->data && w->size >= d->least &&
           w->ne[1] >= d->unit * d->n_parts && t->n_dims > 0 &&
           (!bias || (ggl_is_leaf(bias) && bias->n_dims == 1 && bias->data));
}

/* Returns the first row of a part; of the part behind the last one: the number of rows. */
static int64_t first_row(const divider *d, int64_t n, int part) {
    double before = 0, sum = 0;
    for (int i = 0; i < d->n_parts; i++) {
        sum += d->share[i];
        before += i < part ? d->share[i] : 0;
    }
    const int64_t at = (int64_t)((double)n * before / sum / (double)d->unit + 0.5) * d->unit;
    return part == d->n_parts || at > n ? n : at;
}

/* Makes t the concatenation of its parts. */
static bool divide(divider *d, ggl_tensor *t) {
    const int64_t n = t->ne[0];
    const ggl_tensor *w = t->src[LINEAR_W], *bias = t->src[LINEAR_BIAS];
    ggl_tensor *x = t->src[LINEAR_X], *before = NULL;
    int64_t done = 0;
    for (int part = 0; part < d->n_parts; part++) {
        const int64_t first = first_row(d, n, part), end = first_row(d, n, part + 1);
        if (first == end)
            continue;
        ggl_tensor *own = rows_of(d, w, part, first, end - first),
                   *own_bias = bias && own ? rows_of(d, bias, part, first, end - first) : NULL,
                   *y = own ? tensor_like(d, t, GGL_OP_LINEAR, t->n_src, 0) : NULL;
        if (!y || (bias && !own_bias))
            return false;
        memcpy(y->src, t->src, (size_t)t->n_src * sizeof *y->src);
        y->src[LINEAR_X] = x;
        y->src[LINEAR_W] = own;
        y->src[LINEAR_BIAS] = own_bias;
        y->ne[0] = end - first;
        if (t->name &&
            !(y->name = ggl_arena_printf(&d->g->arena, "%s%c%d", t->name, GGL_PART_MARK, part)))
            return ggl_graph_fail(d->g, GGL_NOMEM, "out of memory for parts of products") != NULL;
        if (!push(d, y))
            return false;
        done = end;
        if (!before) {
            before = y;
            continue;
        }
        ggl_tensor *both = done == n ? t : tensor_like(d, t, GGL_OP_CONCAT, 2, 1);
        ggl_tensor **src = ggl_arena_alloc(&d->g->arena, 2, sizeof *src);
        double *num = ggl_arena_alloc(&d->g->arena, 1, sizeof *num);
        if (!both || !src || !num)
            return ggl_graph_fail(d->g, GGL_NOMEM, "out of memory for parts of products") != NULL;
        src[0] = before;
        src[1] = y;
        both->op = GGL_OP_CONCAT;
        both->src = src;
        both->n_src = 2;
        both->num = num; /* along dimension 0 */
        both->n_num = 1;
        both->ne[0] = done;
        if (both != t && !push(d, both))
            return false;
        before = both;
    }
    d->n_divided++;
    return true;
}

/* True if at least two parts have rows. */
static bool has_parts(const divider *d, const ggl_tensor *t) {
    int n = 0;
    for (int part = 0; part < d->n_parts; part++)
        n += first_row(d, t->ne[0], part) < first_row(d, t->ne[0], part + 1);
    return n > 1;
}

ggl_status ggl_graph_divide(ggl_graph *g, const double *share, int n_parts, size_t least,
                            int64_t unit, int *n, ggl_error *err) {
    divider d = {.g = g,
                 .share = share,
                 .n_parts = n_parts,
                 .least = least,
                 .unit = unit,
                 .n_ids = g->n_ids};
    bool ok = true;
    d.made = n_parts > 0 ? ggl_calloc((size_t)g->n_ids * (size_t)n_parts, sizeof *d.made) : NULL;
    if (!d.made)
        return ggl_fail(err, GGL_NOMEM, "out of memory for parts of products");
    for (size_t i = 0; i < g->nodes.n && ok; i++) {
        ggl_tensor *t = g->nodes.at[i];
        if (is_divisible(&d, t) && has_parts(&d, t))
            ok = divide(&d, t);
        ok = ok && push(&d, t);
    }
    if (ok) {
        ggl_free(g->nodes.at);
        g->nodes = d.nodes;
        ggl_graph_mark(g);
    } else {
        ggl_free(d.nodes.at);
    }
    ggl_free(d.made);
    *n = d.n_divided;
    return ok ? GGL_OK : ggl_graph_error(g, err);
}
