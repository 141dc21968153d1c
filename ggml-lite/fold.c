/* What depends on no input is computed once, in double, and becomes a constant. What is left of
 * constants in double is rounded to f32, but for rope frequencies: angles are computed in double.
 */
#include <inttypes.h>
#include <string.h>

#include "ggl/sched.h"
#include "graph_impl.h"

#define MOST_BYTES ((size_t)64 << 20)

/* A weight's elements under another shape cost nothing; they are no constants to compute. `dense`:
 * no gaps within. */
static bool is_weight_view(const ggl_tensor *t, bool *dense) {
    if (t->op == GGL_OP_WEIGHT)
        return *dense = true;
    if ((t->op != GGL_OP_RESHAPE && t->op != GGL_OP_SPLIT) || !is_weight_view(t->src[0], dense))
        return false;
    if (t->op == GGL_OP_RESHAPE)
        return *dense;
    *dense = *dense && t->num[0] == t->src[0]->n_dims - 1;
    return true;
}

bool ggl_is_weight_view(const ggl_tensor *t) {
    bool dense;
    return !ggl_is_batched(t) && is_weight_view(t, &dense);
}

bool ggl_is_of_weight(const ggl_tensor *t) {
    return ggl_is_weight_view(t) ||
           (t->op == GGL_OP_PICK && t->src[0]->n_dims > 2 && ggl_is_of_weight(t->src[0]));
}

/* Whether inputs are read directly: by a node, or within its body (where leaves are no sources of
 * the call). */
static bool reads_input(const ggl_tensor *t) {
    for (int k = 0; k < t->n_src; k++)
        if (t->src[k] && t->src[k]->op == GGL_OP_INPUT)
            return true;
    for (int k = 0; t->body && k < t->body->n_node; k++)
        if (reads_input(t->body->node[k]))
            return true;
    return t->body && t->body->result->op == GGL_OP_INPUT;
}

/* Needs what stands before t to be decided: constant[] is by id. */
static bool is_constant(const ggl_tensor *t, const bool *constant) {
    if (!t->needed || ggl_is_leaf(t) || ggl_is_batched(t) || t->op == GGL_OP_CACHE ||
        ggl_is_weight_view(t) || reads_input(t))
        return false;
    for (int k = 0; k < t->n_src; k++) {
        const ggl_tensor *x = t->src[k];
        if (x && !ggl_is_leaf(x) && !ggl_is_weight_view(x) && !constant[x->id])
            return false;
    }
    return true;
}

/* --- f64 to f32 ------------------------------------------------------------------------------- */

static ggl_tensor *as_f32(ggl_graph *g, ggl_tensor *t, ggl_tensor **twin) {
    if (twin[t->id])
        return twin[t->id];
    ggl_tensor *f = ggl_arena_alloc(&g->arena, 1, sizeof *f);
    size_t n = t->size / sizeof(double);
    float *data = ggl_arena_alloc(&g->arena, n, sizeof *data);
    if (!f || !data)
        return ggl_graph_fail(g, GGL_NOMEM, "out of memory for constants");
    for (size_t i = 0; i < n; i++)
        data[i] = (float)((const double *)t->data)[i];
    *f = *t;
    f->id = g->n_ids++;
    f->type = GGL_F32;
    f->data = data;
    f->size = n * sizeof *data;
    return twin[t->id] = f;
}

static void narrow(ggl_graph *g, ggl_tensor *const *node, size_t n, ggl_tensor **twin) {
    for (size_t i = 0; i < n; i++) {
        ggl_tensor *t = node[i];
        bool rope = t->op == GGL_OP_ROPE_HALF || t->op == GGL_OP_ROPE_PAIR;
        for (int k = 0; k < t->n_src && t->needed; k++)
            if (t->src[k] && t->src[k]->op == GGL_OP_CONST && t->src[k]->type == GGL_F64 &&
                !(rope && k == 1))
                t->src[k] = as_f32(g, t->src[k], twin);
        if (t->body)
            narrow(g, t->body->node, (size_t)t->body->n_node, twin);
        if (g->error.status != GGL_OK)
            return;
    }
}

ggl_status ggl_graph_settle(ggl_graph *g, ggl_error *err) {
    if (g->settled)
        return GGL_OK;
    ggl_tensor **twin = ggl_calloc((size_t)g->n_ids, sizeof *twin); /* by id of the f64 constant */
    if (!twin)
        return ggl_fail(err, GGL_NOMEM, "out of memory for constants");
    narrow(g, g->nodes.at, g->nodes.n, twin);
    ggl_free(twin);
    g->settled = true;
    return ggl_graph_error(g, err);
}

/* --- computing -------------------------------------------------------------------------------- */

typedef struct fold {
    ggl_graph *g;
    ggl_backend *b;
    node_list nodes;  /* to compute, weight views included */
    node_list wanted; /* of these, what others read */
    node_list leaves;
    bool *constant; /* by id: to compute */
    ggl_loc *loc;
    ggl_buffer *region[GGL_REGION_WEIGHT]; /* leaves and results all lie in GGL_REGION_IO */
    size_t size;
} fold;

static bool push(ggl_graph *g, node_list *l, ggl_tensor *t) {
    if (!ggl_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at))
        return ggl_graph_fail(g, GGL_NOMEM, "out of memory for constants") != NULL;
    l->at[l->n++] = t;
    return true;
}

static bool place(fold *f, ggl_tensor *t, node_list *l, size_t size) {
    if (f->loc[t->id].region >= 0)
        return true;
    f->loc[t->id] = (ggl_loc){GGL_REGION_IO, f->size};
    if (!ggl_size_add(f->size, size, &f->size) || !ggl_size_align(f->size, 64, &f->size))
        return ggl_graph_fail(f->g, GGL_LIMIT, "constants are too large") != NULL;
    return push(f->g, l, t);
}

static bool place_leaves(fold *f, ggl_tensor *const *node, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < node[i]->n_src; k++)
            if (node[i]->src[k] && ggl_is_leaf(node[i]->src[k]) &&
                !place(f, node[i]->src[k], &f->leaves, node[i]->src[k]->size))
                return false;
        if (node[i]->body && !place_leaves(f, node[i]->body->node, (size_t)node[i]->body->n_node))
            return false;
    }
    return true;
}

/* Constants that something of another kind reads. */
static bool place_wanted(fold *f, ggl_tensor *const *node, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ggl_tensor *t = node[i];
        if (!t->needed)
            continue;
        for (int k = 0; k < t->n_src && !f->constant[t->id]; k++) {
            ggl_tensor *x = t->src[k];
            if (!x || !f->constant[x->id] || f->loc[x->id].region >= 0)
                continue;
            if (x->type != GGL_I32)
                x->type = GGL_F64;
            if (!place(f, x, &f->wanted, (size_t)(ggl_count(x)) * (x->type == GGL_I32 ? 4 : 8)))
                return false;
        }
    }
    return true;
}

static bool collect(fold *f) {
    ggl_graph *g = f->g;
    size_t total = 0;
    const ggl_tensor *largest = NULL;
    for (size_t i = 0; i < g->nodes.n; i++) {
        ggl_tensor *t = g->nodes.at[i];
        bool view = t->needed && !ggl_is_leaf(t) && ggl_is_weight_view(t);
        f->constant[t->id] = is_constant(t, f->constant);
        if (!view && !f->constant[t->id])
            continue;
        if (!push(g, &f->nodes, t))
            return false;
        if (view)
            continue;
        total += (size_t)ggl_count(t) * 8; /* at most 2^20 nodes of 2^43 bytes */
        if (!largest || ggl_count(t) > ggl_count(largest))
            largest = t;
    }
    if (total > MOST_BYTES) {
        char text[256];
        ggl_graph_fail(g, GGL_LIMIT,
                       "%zu MiB of constants are to be computed at load, at most 64 are possible; "
                       "the largest is %s %s "
                       "%s%s; convert the file instead",
                       total >> 20, ggl_op_get(largest->op).name,
                       ggl_shape_text(largest, text, sizeof text), largest->origin ? "at " : "",
                       largest->origin ? largest->origin : "");
        return false;
    }
    return place_wanted(f, g->nodes.at, g->nodes.n);
}

static ggl_status upload_leaves(fold *f, ggl_error *err) {
    ggl_status s =
        f->b->v->alloc(f->b, GGL_REGION_IO, f->size, NULL, &f->region[GGL_REGION_IO], err);
    for (size_t i = 0; i < f->leaves.n && s == GGL_OK; i++) {
        const ggl_tensor *t = f->leaves.at[i];
        s = f->b->v->upload(f->b, f->region[GGL_REGION_IO], f->loc[t->id].offset, t->data, t->size,
                            err);
    }
    return s;
}

static ggl_status take_results(fold *f, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < f->wanted.n && s == GGL_OK; i++) {
        ggl_tensor *t = f->wanted.at[i];
        t->size = (size_t)ggl_count(t) * (t->type == GGL_I32 ? 4 : 8);
        void *data = ggl_arena_alloc(&f->g->arena, t->size, 1);
        if (!data)
            return ggl_fail(err, GGL_NOMEM, "out of memory for constants");
        s = f->b->v->download(f->b, f->region[GGL_REGION_IO], f->loc[t->id].offset, data, t->size,
                              err);
        t->data = data;
        t->op = GGL_OP_CONST;
        t->n_src = t->n_num = 0;
        t->body = NULL;
    }
    return s;
}

static ggl_status compute(fold *f, ggl_error *err) {
    ggl_plan *plan = NULL;
    const size_t no_store = 0;
    ggl_segment seg = {f->g, f->nodes.at, (int)f->nodes.n, 1, f->loc, &no_store, 1, NULL};
    ggl_status s = f->b->v->compile(f->b, &seg, &plan, err);
    if (s == GGL_OK)
        s = upload_leaves(f, err);
    if (s == GGL_OK)
        s = f->b->v->alloc(f->b, GGL_REGION_ARENA, plan->arena_size, NULL,
                           &f->region[GGL_REGION_ARENA], err);
    if (s == GGL_OK)
        s = f->b->v->run(f->b, plan, f->region, 1, err);
    if (s == GGL_OK)
        s = f->b->v->wait(f->b, err);
    if (s == GGL_OK)
        s = take_results(f, err);
    for (int i = 0; i < 2; i++)
        if (f->region[i])
            f->b->v->free(f->b, f->region[i]);
    if (plan)
        f->b->v->plan_free(f->b, plan);
    return s;
}

ggl_status ggl_graph_fold(ggl_graph *g, ggl_backend *b, ggl_error *err) {
    if (!g->finished || g->settled)
        return ggl_fail(err, GGL_USAGE,
                        "a graph is folded once, after ggl_graph_finish and before ggl_sched_new");
    fold f = {.g = g, .b = b};
    f.loc = ggl_calloc((size_t)g->n_ids, sizeof *f.loc);
    f.constant = ggl_calloc((size_t)g->n_ids, sizeof *f.constant);
    ggl_status s =
        f.loc && f.constant ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for constants");
    for (int i = 0; i < g->n_ids && f.loc; i++)
        f.loc[i].region = -1;
    if (s == GGL_OK && (!collect(&f) || !place_leaves(&f, f.nodes.at, f.nodes.n)))
        s = ggl_graph_error(g, err);
    if (s == GGL_OK && f.wanted.n)
        s = compute(&f, err);
    ggl_free(f.loc);
    ggl_free(f.constant);
    ggl_free(f.nodes.at);
    ggl_free(f.wanted.at);
    ggl_free(f.leaves.at);
    ggl_graph_mark(g); /* what only led to constants is not */
    return s == GGL_OK ? ggl_graph_settle(g, err) : s;
}
