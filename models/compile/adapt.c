/* Applies adapters (adapter.h) while a descriptor is built. No descriptor knows of them: each node
 * that reads a weight passes through llm_arch_adapted, which, if the weight has a pair, adds what the
 * pair changes. With W' = W + scale * rows * columns:
 *
 *     linear(x, W')    = linear(x, W) + linear(scale * linear(x, columns), rows)
 *     W'[token]        = W[token] + linear(scale * rows[token], columns transposed)
 *
 * A descriptor may also read a part of W, another shape of it, or matrices of a stack that an index
 * chooses. Such a node is left alone, and when a product reads it, the pair is cut in the same way
 * (cut_pair): columns of W are columns of `columns`, rows of W are rows of `rows`. Any other use of
 * an adapted weight is an error. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "compile.h"

/* The change of one weight by one pair, as leaves of the graph. */
typedef struct change {
    ggl_tensor *rows;    /* [rank, out] or [rank, out, n] */
    ggl_tensor *columns; /* [in, rank] or [in, rank, n]; flipped: [rank, in] */
    bool flipped;
    double scale;
    const llm_adapter *adapter;
    const arch_pair *pair;
    size_t next; /* 1 + the index of the weight's next change; 0: none */
} change;

/* `rows` of a change whose data is known when all parts of the source tensor are placed. */
typedef struct later {
    ggl_tensor *rows, *columns;
    const ggl_gguf_tensor *from;
    arch_part part;
} later;

/* A node that several products may share: columns times x, scaled; without x: columns flipped. */
typedef struct shared {
    const ggl_tensor *x, *columns;
    double scale;
    int scope; /* the body that it is in */
    ggl_tensor *t;
} shared;

struct arch_adapt {
    const llm_adapter_use *use;
    size_t n;
    bool **hit; /* for each use and pair: it changes a weight */
    change *change;
    size_t n_change, cap_change;
    /* by id of a WEIGHT: 0: not looked up yet, 1: no change, else 2 + the index of the first one */
    size_t *first;
    size_t cap_first;
    const ggl_tensor **source; /* by id of a PARAM: the call's source */
    size_t cap_source;
    later *later;
    size_t n_later, cap_later;
    shared *shared;
    size_t n_shared, cap_shared;
};

/* --- errors ----------------------------------------------------------------------------------- */

/* Reports an error about an adapter: its file's name comes first. Returns false. */
static bool refuse(arch_eval *ev, ggl_status st, const llm_adapter *a, const char *fmt, ...)
    GGL_PRINTF(4, 5);
static bool refuse(arch_eval *ev, ggl_status st, const llm_adapter *a, const char *fmt, ...) {
    if (ev->status != GGL_OK)
        return false;
    va_list args;
    va_start(args, fmt);
    ev->status = ggl_failv(ev->err, st, fmt, args);
    va_end(args);
    (void)ggl_within(ev->err, st, "%s", llm_adapter_name(a));
    return false;
}

/* Writes the extents of a tensor of a file to buf; returns buf. */
static const char *extents_text(const int64_t *ne, int n, char *buf, size_t size) {
    size_t at = 0;
    for (int d = 0; d < n && at < size; d++)
        at += (size_t)snprintf(buf + at, size - at, "%s%" PRId64, d ? ", " : "[", ne[d]);
    if (at < size)
        snprintf(buf + at, size - at, "]");
    return buf;
}

static bool refuse_shape(arch_eval *ev, const llm_adapter *a, const arch_pair *p, const char *name,
                         int n_dims, const int64_t *ne) {
    char lora_a[100], lora_b[100], model[100];
    return refuse(ev, GGL_SHAPE, a,
                  "%.200s.lora_a is %s and .lora_b is %s, which does not fit %.200s %s of %.200s",
                  p->name.s, extents_text(p->a->ne, p->a->n_dims, lora_a, sizeof lora_a),
                  extents_text(p->b->ne, p->b->n_dims, lora_b, sizeof lora_b), name,
                  extents_text(ne, n_dims, model, sizeof model), ev->src->name);
}

/* Reports that the node t reads an adapted weight in a way that has no low-rank change. */
static ggl_tensor *refuse_use(arch_eval *ev, arch_place p, const ggl_tensor *t, const change *c) {
    llm_arch_error_hint(
        ev, GGL_UNSUPPORTED, p, NULL,
        "%.200s changes %.200s, which is used here in %s: only products and lookups "
        "of rows can be adapted",
        llm_adapter_name(c->adapter), c->pair->name.s, t->call ? t->call : ggl_op_get(t->op).name);
    return NULL;
}

/* --- changes of a weight ---------------------------------------------------------------------- */

static const arch_pair *pair_named(const llm_adapter *a, const char *name, size_t *at) {
    *at = ggl_index_find(&a->index, a->pair, (ggl_str){name, strlen(name)});
    return *at == SIZE_MAX ? NULL : &a->pair[*at];
}

/* Makes a leaf for a tensor of the adapter, named like the tensor. NULL: reported. */
static ggl_tensor *leaf(arch_eval *ev, const ggl_gguf_tensor *t, int n_dims, const int64_t *ne,
                        const void *data) {
    char name[3 * ARCH_MAX_NAME];
    snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
    ggl_tensor *w = ggl_graph_weight(ev->g, name, t->type, n_dims, ne, data);
    return llm_arch_graph_ok(ev, ev->at->place) ? w : NULL;
}

/* Adds a change of weight w to the list. False: reported. */
static bool add_change(arch_eval *ev, const ggl_tensor *w, change c, size_t use) {
    struct arch_adapt *x = ev->adapt;
    const size_t i = x->n_change;
    if (!c.rows || !c.columns ||
        !llm_arch_push(ev, &x->change, &x->cap_change, i + 1, sizeof *x->change))
        return false;
    c.next = x->first[w->id] > 1 ? x->first[w->id] - 1 : 0;
    x->change[x->n_change++] = c;
    x->first[w->id] = i + 2;
    x->hit[use][c.pair - c.adapter->pair] = true;
    return true;
}

static double scale_of(const llm_adapter_use *u, const arch_pair *p) {
    const double alpha = u->adapter->alpha;
    return alpha != 0 ? u->scale * alpha / (double)p->rank : u->scale;
}

/* True if the pair's extents are those of a weight with `ne`. */
static bool pair_fits(const arch_pair *p, int n_dims, const int64_t *ne) {
    const ggl_gguf_tensor *rows = arch_pair_rows(p), *columns = arch_pair_columns(p);
    const bool one = columns->ne[2] == 1; /* for a whole stack */
    return n_dims >= 2 && n_dims <= 3 && columns->ne[p->embedding] == ne[0] &&
           rows->ne[1] == ne[1] && rows->ne[2] == ne[2] && (one || columns->ne[2] == ne[2]);
}

/* Adds the change by pair p of the weight w. False: reported. */
static bool change_by(arch_eval *ev, ggl_tensor *w, size_t use, const arch_pair *p) {
    const llm_adapter_use *u = &ev->adapt->use[use];
    const ggl_gguf_tensor *rows = arch_pair_rows(p), *columns = arch_pair_columns(p);
    if (!pair_fits(p, w->n_dims, w->ne))
        return refuse_shape(ev, u->adapter, p, w->name, w->n_dims, w->ne);
    const int n = columns->ne[2] == 1 && w->ne[2] != 1 ? 2 : w->n_dims;
    change c = {.flipped = p->embedding, .scale = scale_of(u, p), .adapter = u->adapter, .pair = p};
    c.rows = leaf(ev, rows, w->n_dims, rows->ne, rows->data);
    c.columns = leaf(ev, columns, n, columns->ne, columns->data);
    return add_change(ev, w, c, use);
}

/* Looks up the changes of the weight w, unless that was done before. False: reported. */
static bool find_changes(arch_eval *ev, ggl_tensor *w) {
    struct arch_adapt *x = ev->adapt;
    if (!llm_arch_push(ev, &x->first, &x->cap_first, (size_t)w->id + 1, sizeof *x->first))
        return false;
    if (x->first[w->id] != 0)
        return true;
    x->first[w->id] = 1;
    for (size_t i = 0, at; i < x->n; i++) {
        const arch_pair *p = pair_named(x->use[i].adapter, w->name, &at);
        if (p && !change_by(ev, w, i, p))
            return false;
    }
    return true;
}

/* --- which weight a node reads ---------------------------------------------------------------- */

/* True for nodes that only cut, reshape or choose what they read. */
static bool is_cut(const ggl_tensor *t) {
    return t->op == GGL_OP_SPLIT || t->op == GGL_OP_RESHAPE || (t->op == GGL_OP_PICK && t->gather);
}

/* Returns the weight that t is, or is cut from; NULL: none. */
static ggl_tensor *weight_under(const arch_eval *ev, const ggl_tensor *t) {
    const struct arch_adapt *x = ev->adapt;
    while (t && t->op != GGL_OP_WEIGHT)
        t = is_cut(t)                                                ? t->src[0]
            : t->op == GGL_OP_PARAM && (size_t)t->id < x->cap_source ? x->source[t->id]
                                                                     : NULL;
    return (ggl_tensor *)t;
}

/* Returns 1 + the index of the first change of what t is cut from; 0: it has none, or ev has an
 * error. */
static size_t changes_of(arch_eval *ev, const ggl_tensor *t) {
    ggl_tensor *w = weight_under(ev, t);
    return w && find_changes(ev, w) && ev->adapt->first[w->id] > 1 ? ev->adapt->first[w->id] - 1
                                                                   : 0;
}

bool llm_arch_is_adapted(const arch_eval *ev, const ggl_tensor *t) {
    return ev->adapt && t && changes_of((arch_eval *)ev, t) != 0;
}

bool llm_arch_adapt_param(arch_eval *ev, const ggl_tensor *param, const ggl_tensor *source) {
    struct arch_adapt *x = ev->adapt;
    if (!x)
        return true;
    if (!llm_arch_push(ev, &x->source, &x->cap_source, (size_t)param->id + 1, sizeof *x->source))
        return false;
    x->source[param->id] = source;
    return true;
}

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
static bool cut_split(arch_eval *ev, arch_place p, const ggl_tensor *t, change *c) {
    const int dim = (int)t->num[0];
    if (dim == 0)
        c->columns = split(ev, p, c->columns, c->flipped ? 1 : 0, t->num);
    else
        c->rows = split(ev, p, c->rows, dim, t->num);
    if (dim == 2 && c->columns->n_dims == 3)
        c->columns = split(ev, p, c->columns, 2, t->num);
    return c->rows && c->columns;
}

/* The change of the weight in another shape, which keeps the rows' length. */
static bool cut_reshape(arch_eval *ev, arch_place p, const ggl_tensor *t, change *c) {
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
    return c->rows && c->columns;
}

/* The changes of the matrices that an index chooses from a stack. */
static bool cut_gather(arch_eval *ev, arch_place p, const ggl_tensor *t, change *c) {
    ggl_tensor *rows[2] = {c->rows, t->src[1]}, *columns[2] = {c->columns, t->src[1]};
    if (c->columns->n_dims == 3)
        c->columns = llm_arch_plain_node(ev, p, GGL_OP_PICK, columns, 2, NULL, 0);
    c->rows = llm_arch_plain_node(ev, p, GGL_OP_PICK, rows, 2, NULL, 0);
    return c->rows && c->columns;
}

/* Turns *c, the change of a weight, into that of t, which is cut from it. False: t has no such
 * change, or ev has an error. */
static bool cut_pair(arch_eval *ev, arch_place p, const ggl_tensor *t, change *c) {
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

/* Returns linear(x, w) without a bias. */
static ggl_tensor *product(arch_eval *ev, arch_place p, ggl_tensor *x, ggl_tensor *w) {
    ggl_tensor *src[3] = {x, w, NULL};
    return x && w ? llm_arch_plain_node(ev, p, GGL_OP_LINEAR, src, 3, NULL, 0) : NULL;
}

/* Finds a node made before in the same body, for example columns * x, which the parts of a fused
 * tensor share. */
static ggl_tensor *find_shared(const arch_eval *ev, const shared *want) {
    const struct arch_adapt *x = ev->adapt;
    for (size_t i = x->n_shared; i-- > 0 && i + 16 >= x->n_shared;)
        if (x->shared[i].x == want->x && x->shared[i].columns == want->columns &&
            x->shared[i].scope == want->scope && x->shared[i].scale == want->scale)
            return x->shared[i].t;
    return NULL;
}

static ggl_tensor *share(arch_eval *ev, shared s, ggl_tensor *t) {
    struct arch_adapt *x = ev->adapt;
    if (!t || !llm_arch_push(ev, &x->shared, &x->cap_shared, x->n_shared + 1, sizeof *x->shared))
        return NULL;
    s.t = t;
    x->shared[x->n_shared++] = s;
    return t;
}

/* The columns of a change as [rank, in] if `flipped`, else as [in, rank]. */
static ggl_tensor *columns_as(arch_eval *ev, arch_place p, const change *c, bool flipped,
                              int scope) {
    if (c->flipped == flipped)
        return c->columns;
    const shared s = {.columns = c->columns, .scope = scope};
    ggl_tensor *t = find_shared(ev, &s), *from = c->columns;
    return t ? t
             : share(ev, s,
                     llm_arch_plain_node(ev, p, GGL_OP_TRANSPOSE, &from, 1, (double[]){0, 1}, 2));
}

/* scale * columns * x, of rank numbers */
static ggl_tensor *inner(arch_eval *ev, arch_place p, const change *c, ggl_tensor *x, int scope) {
    const shared s = {.x = x, .columns = c->columns, .scale = c->scale, .scope = scope};
    ggl_tensor *t = find_shared(ev, &s);
    if (t)
        return t;
    t = product(ev, p, x, columns_as(ev, p, c, false, scope));
    return share(ev, s, scaled(ev, p, t, c->scale));
}

/* Returns what the change c of the weight adds to the node t, a product or a lookup of rows. NULL: nothing
 * can be added, or ev has an error. */
static ggl_tensor *addend(arch_eval *ev, arch_place p, const ggl_tensor *t, change c) {
    if (t->op == GGL_OP_LINEAR)
        return cut_pair(ev, p, t->src[1], &c)
                   ? product(ev, p, inner(ev, p, &c, t->src[0], t->scope), c.rows)
                   : NULL;
    if (!cut_pair(ev, p, t->src[0], &c) || c.rows->n_dims != 2)
        return NULL;
    ggl_tensor *src[2] = {c.rows, t->src[1]};
    ggl_tensor *row = llm_arch_plain_node(ev, p, GGL_OP_PICK, src, 2, NULL, 0);
    row = row ? scaled(ev, p, row, c.scale) : NULL;
    return row ? product(ev, p, row, columns_as(ev, p, &c, true, t->scope)) : NULL;
}

ggl_tensor *llm_arch_adapted(arch_eval *ev, arch_place p, ggl_tensor *t) {
    struct arch_adapt *x = ev->adapt;
    if (!x || is_cut(t))
        return t;
    const int place = t->op == GGL_OP_LINEAR ? 1 : t->op == GGL_OP_PICK ? 0 : -1;
    size_t first = 0;
    for (int k = 0; k < t->n_src; k++) {
        const size_t at = t->src[k] ? changes_of(ev, t->src[k]) : 0;
        if (ev->status != GGL_OK || (at && k != place))
            return at ? refuse_use(ev, p, t, &x->change[at - 1]) : NULL;
        first = at ? at : first;
    }
    ggl_tensor *sum = t;
    for (size_t i = first; i > 0; i = x->change[i - 1].next) {
        const change c = x->change[i - 1];
        if (c.scale == 0)
            continue;
        ggl_tensor *src[2] = {sum, addend(ev, p, t, c)};
        if (!src[1])
            return ev->status == GGL_OK ? refuse_use(ev, p, t, &c) : NULL;
        sum = llm_arch_plain_node(ev, p, GGL_OP_ADD, src, 2, NULL, 0);
        if (!sum)
            return NULL;
    }
    return sum;
}

/* --- tensors under another name --------------------------------------------------------------- */

ggl_tensor *llm_arch_adapt_other(arch_eval *ev, const char *name, ggl_tensor *other) {
    const struct arch_adapt *x = ev->adapt;
    bool any = false;
    for (size_t i = 0, at; x && i < x->n && !any; i++)
        any = pair_named(x->use[i].adapter, name, &at) != NULL;
    if (!any || other->op != GGL_OP_WEIGHT)
        return other;
    ggl_tensor *t =
        ggl_graph_weight(ev->g, name, other->type, other->n_dims, other->ne, other->data);
    if (!llm_arch_graph_ok(ev, ev->at->place) || !t)
        return NULL;
    for (int d = 0; d < other->n_dims; d++)
        if (other->dim_name[d])
            ggl_tensor_set_dim_name(ev->g, t, d, other->dim_name[d]);
    return t;
}

/* Adds the change of a part by pair p of the source tensor that it is from. False: reported. */
static bool change_part(arch_eval *ev, const arch_part *part, size_t use, const arch_pair *p) {
    struct arch_adapt *x = ev->adapt;
    const llm_adapter_use *u = &x->use[use];
    ggl_tensor *w = part->t;
    int64_t n_rows, ne[GGL_MAX_DIMS] = {p->rank, w->ne[1], w->ne[2], w->ne[3]};
    const llm_arch_tensor *whole = llm_arch_whole_tensor(part, &n_rows);
    if (w->n_dims < 2 || p->a->ne[0] != whole->ne[0] || p->a->ne[2] != 1 ||
        ggl_extents(p->b->ne, 1, GGL_MAX_DIMS, 1) != n_rows)
        return refuse_shape(ev, u->adapter, p, whole->name, whole->n_dims, whole->ne);
    change c = {.scale = scale_of(u, p), .adapter = u->adapter, .pair = p};
    for (size_t i = 0; i < x->n_later && !c.columns; i++) /* the first part's are everybody's */
        if (x->later[i].from == p->b && x->later[i].part.whole == part->whole)
            c.columns = x->later[i].columns;
    c.rows = leaf(ev, p->b, w->n_dims, ne, NULL);
    c.columns = c.columns ? c.columns : leaf(ev, p->a, 2, p->a->ne, p->a->data);
    if (!add_change(ev, w, c, use) ||
        !llm_arch_push(ev, &x->later, &x->cap_later, x->n_later + 1, sizeof *x->later))
        return false;
    x->later[x->n_later++] = (later){c.rows, c.columns, p->b, *part};
    return true;
}

bool llm_arch_adapt_part(arch_eval *ev, const arch_part *part) {
    const struct arch_adapt *x = ev->adapt;
    int64_t n_rows;
    if (!x)
        return true;
    bool ok = find_changes(ev, part->t);
    for (size_t i = 0, at; i < x->n && ok; i++) {
        const char *whole = llm_arch_whole_tensor(part, &n_rows)->name;
        const arch_pair *p = pair_named(x->use[i].adapter, whole, &at);
        ok = !p || change_part(ev, part, i, p);
    }
    return ok;
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* Checks what can be checked of an adapter before the build. False: reported. */
static bool check_use(arch_eval *ev, const llm_adapter_use *u) {
    const ggl_str own = u->adapter->architecture;
    if (!isfinite(u->scale))
        return refuse(ev, GGL_USAGE, u->adapter, "the scale %g is not a finite number", u->scale);
    if (ggl_str_is(own, ev->family))
        return true;
    return refuse(ev, GGL_FORMAT, u->adapter,
                  "the adapter is for models of the architecture %.*s, but %.200s has the "
                  "architecture %s",
                  (int)(own.n < 100 ? own.n : 100), own.s, ev->src->name, ev->family);
}

bool llm_arch_adapt_init(arch_eval *ev) {
    const llm_arch_params *p = ev->params;
    if (!p || p->n_adapters == 0)
        return true;
    struct arch_adapt *x = ggl_arena_alloc(&ev->arena, 1, sizeof *x);
    if (!x)
        return llm_arch_nomem(ev), false;
    x->use = p->adapter;
    x->n = p->n_adapters;
    x->hit = ggl_arena_alloc(&ev->arena, x->n, sizeof *x->hit);
    for (size_t i = 0; i < x->n && x->hit; i++) {
        if (!check_use(ev, &x->use[i]))
            return false;
        if (!(x->hit[i] = ggl_arena_alloc(&ev->arena, x->use[i].adapter->n_pairs, 1)))
            x->hit = NULL;
    }
    if (!x->hit)
        return llm_arch_nomem(ev), false;
    ev->adapt = x;
    return true;
}

void llm_arch_adapt_fini(arch_eval *ev) {
    struct arch_adapt *x = ev->adapt;
    if (!x)
        return;
    ggl_free(x->change);
    ggl_free(x->first);
    ggl_free(x->source);
    ggl_free(x->later);
    ggl_free(x->shared);
    ev->adapt = NULL;
}

/* Reports a pair that changes nothing, with the reason. Returns false. */
static bool refuse_unused(arch_eval *ev, const llm_adapter *a, const arch_pair *p) {
    llm_arch_tensor t = {.name = p->name.s, .optional = true};
    if (ev->src->tensor_at && ev->src->find_tensor(ev->src->ctx, &t))
        return refuse(ev, GGL_UNSUPPORTED, a,
                      "%.200s.lora_a: %.200s has this tensor, but does not compute with it",
                      p->name.s, ev->src->name);
    ggl_nearest near = ggl_nearest_to(p->name.s);
    for (size_t i = 0; i < ev->n_weight; i++)
        ggl_nearest_try(&near, ev->weight_name[i].s, ev->weight_name[i].n);
    return refuse(ev, GGL_NOT_FOUND, a, "%.200s.lora_a: %.200s has no tensor %.200s%s%.200s%s",
                  p->name.s, ev->src->name, p->name.s, near.best ? "; did you mean " : "",
                  near.best ? near.best : "", near.best ? "?" : "; is it another model's adapter?");
}

bool llm_arch_adapt_finish(arch_eval *ev) {
    const struct arch_adapt *x = ev->adapt;
    for (size_t i = 0; x && i < x->n_later; i++) {
        const later *l = &x->later[i];
        if (l->from->data)
            l->rows->data =
                (const char *)l->from->data + ggl_row_size(l->from->type, l->from->ne[0]) *
                                                  (size_t)llm_arch_rows_before(&l->part);
    }
    for (size_t i = 0; x && i < x->n; i++)
        for (size_t k = 0; k < x->use[i].adapter->n_pairs; k++)
            if (!x->hit[i][k])
                return refuse_unused(ev, x->use[i].adapter, &x->use[i].adapter->pair[k]);
    return true;
}
