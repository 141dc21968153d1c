/* Constant folding: computes every node that depends on no input, once, in double, and makes it a
 * constant. Large products, and sums of squares of large weights, may be left to another backend, which computes them in f32, in a
 * second pass. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "ggl/internal/fold.h"
#include "ggl/program.h"
#include "ggl/internal/graph.h"
#include "graph/graph_impl.h"

/* Of constants, as f64; of large products and what is made of them, as f32. */
#define MOST_BYTES         ((size_t)64 << 20)
#define MOST_PRODUCT_BYTES ((size_t)1 << 30)

/* Of values in the bodies of calls that one pass computes, unless a single call has more: the calls of a model's adapters are hundreds. */
#define MOST_BODY_BYTES ((size_t)16 << 20)

/* --- what is constant ------------------------------------------------------------------------- */

/* True for inputs, and for variables and views of them. */
static bool may_change(const ggl_tensor *t) {
    return t->op == GGL_OP_INPUT || (t->view_of && t->view_of->variable);
}

/* True if the node reads an input or a variable, itself or in its body (leaves that a body reads are not among
 * the call's sources). */
static bool reads_input(const ggl_tensor *t) {
    for (int k = 0; k < ggl_n_reads(t); k++)
        if (ggl_read(t, k) && may_change(ggl_read(t, k)))
            return true;
    for (int k = 0; t->body && k < t->body->n_node; k++)
        if (reads_input(t->body->node[k]))
            return true;
    return t->body && may_change(t->body->result);
}

/* True if the value of t depends on no input. constant[], by id, is set for all nodes before t. */
static bool is_constant(const ggl_tensor *t, const bool *constant) {
    if (!t->computed || ggl_is_batched(t) || t->op == GGL_OP_CACHE || t->into || reads_input(t))
        return false;
    for (int k = 0; k < ggl_n_reads(t); k++) {
        const ggl_tensor *x = ggl_read(t, k);
        if (x && !ggl_is_leaf(x) && !x->view_of && !constant[x->id])
            return false;
    }
    return true;
}

/* --- computing -------------------------------------------------------------------------------- */

typedef struct fold {
    ggl_graph *g;
    ggl_backend *b;
    node_list nodes;  /* the nodes to compute, and views of weights */
    node_list wanted; /* those of them that other nodes read: they become constants */
    node_list leaves; /* the leaves that they read */
    ggl_type type;    /* of results that are numbers: f64 or f32 */
    bool no_products; /* large products are left to a later pass */
    bool *constant;   /* by id: depends on no input, and is to be computed */
    bool *large;      /* by id: a large product, or made of one */
    bool *part_of;    /* by id: a constant other than a gather of a weight is computed from it */
    ggl_loc *loc;     /* by id */
    /* Results and leaves lie in GGL_REGION_IO, but for weights that the backend reads where they are: each is a region of its own, as an
     * adapter's constants are made of all of a model, of which there is no room for a copy. */
    ggl_buffer **region; /* [n_regions] */
    size_t n_regions, cap_regions;
    size_t size; /* bytes of GGL_REGION_IO */
    size_t body_bytes;
    bool more; /* calls are left to another pass */
} fold;

static bool push(ggl_graph *g, node_list *l, ggl_tensor *t) {
    if (!ggl_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at))
        return ggl_graph_fail(g, GGL_NOMEM, "out of memory for constants") != NULL;
    l->at[l->n++] = t;
    return true;
}

/* Gives t a place of `size` bytes in GGL_REGION_IO and adds it to l, unless it has a place. */
static bool place(fold *f, ggl_tensor *t, node_list *l, size_t size) {
    if (f->loc[t->id].region >= 0)
        return true;
    f->loc[t->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = f->size};
    if (!ggl_size_add(f->size, size, &f->size) || !ggl_size_align(f->size, 64, &f->size))
        return ggl_graph_fail(f->g, GGL_LIMIT, "constants are too large") != NULL;
    return push(f->g, l, t);
}

/* Makes the weight's memory a region. False: it has no memory, the backend cannot read it there, or there is no memory for the list. */
static bool place_in_place(fold *f, const ggl_tensor *x) {
    ggl_error err;
    ggl_buffer *b = NULL;
    if (!x->data || f->n_regions > INT_MAX ||
        !ggl_grow(&f->region, &f->cap_regions, f->n_regions + 1, sizeof *f->region) ||
        f->b->v->alloc(f->b, GGL_REGION_WEIGHT, x->size, x->data, &b, &err) != GGL_OK)
        return false;
    f->loc[x->id] = (ggl_loc){.region = (int)f->n_regions, .offset = 0};
    f->region[f->n_regions++] = b;
    return true;
}

static bool place_leaf(fold *f, ggl_tensor *x) {
    if (!x || !ggl_is_leaf(x) || f->loc[x->id].region >= 0)
        return true;
    return (x->op == GGL_OP_WEIGHT && place_in_place(f, x)) || place(f, x, &f->leaves, x->size);
}

/* Gives places to the leaves that the n nodes and their bodies read. */
static bool place_leaves(fold *f, ggl_tensor *const *node, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < ggl_n_reads(node[i]); k++)
            if (!place_leaf(f, ggl_read(node[i], k)))
                return false;
        ggl_body *b = node[i]->body;
        if (b && (!place_leaf(f, b->result) || !place_leaves(f, b->node, (size_t)b->n_node)))
            return false;
    }
    return true;
}

/* Gives x, which a node that stays reads, a place among the results if it is a constant. A gather
 * of a weight's matrices is not computed, so that products read the weight in its own type. */
static bool place_wanted(fold *f, ggl_tensor *x) {
    size_t size;
    if (!x || !f->constant[x->id] || ggl_is_of_weight(x) || f->loc[x->id].region >= 0)
        return true;
    if (x->type != GGL_I32)
        x->type = f->type;
    return ggl_value_bytes(x, 1, &size) && place(f, x, &f->wanted, size);
}

/* Places all constants that are read by nodes that stay in the graph. */
static bool place_all_wanted(fold *f, ggl_tensor *const *node, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ggl_tensor *t = node[i];
        bool stays = t->computed && (!f->constant[t->id] || ggl_is_of_weight(t));
        for (int k = 0; stays && k < ggl_n_reads(t); k++)
            if (!place_wanted(f, ggl_read(t, k)))
                return false;
    }
    return true;
}

/* Fails because the constants have `total` bytes, more than `most`; returns false. */
static bool refuse_size(ggl_graph *g, size_t total, size_t most, const ggl_tensor *largest) {
    char text[256];
    ggl_graph_fail(g, GGL_LIMIT,
                   "the graph computes %zu MiB of constants at load, at most %zu are allowed; the "
                   "largest is %s %s %s%s; convert the file instead",
                   total >> 20, most >> 20, ggl_op_get(largest->op).name,
                   ggl_shape_text(largest, text, sizeof text), largest->origin ? "at " : "",
                   largest->origin ? largest->origin : "");
    return false;
}

/* True if a pass has room for the values in the body of the constant t, if it has one that the backend runs node by node. */
static bool has_room(fold *f, const ggl_tensor *t) {
    size_t bytes = 0;
    if (!t->body || (ggl_composite_of(t) != GGL_COMPOSITE_NONE && !f->b->v->refuses(f->b, t)))
        return true;
    for (int k = 0; k < t->body->n_node; k++)
        if (!ggl_size_add(bytes, (size_t)ggl_count(t->body->node[k]) * sizeof(double), &bytes))
            bytes = SIZE_MAX;
    const bool fits = f->body_bytes == 0 ||
                      (bytes <= MOST_BODY_BYTES && f->body_bytes + bytes <= MOST_BODY_BYTES);
    if (fits && !ggl_size_add(f->body_bytes, bytes, &f->body_bytes))
        f->body_bytes = SIZE_MAX / 2;
    f->more |= !fits;
    return fits;
}

/* Sets f->constant, f->large and f->part_of. */
static void find_constants(fold *f) {
    for (size_t i = 0; i < f->g->nodes.n; i++) {
        const ggl_tensor *t = f->g->nodes.at[i];
        f->large[t->id] = ggl_is_large_product(t);
        for (int k = 0; k < ggl_n_reads(t); k++)
            f->large[t->id] |= ggl_read(t, k) && f->large[ggl_read(t, k)->id];
        f->constant[t->id] =
            !(f->no_products && f->large[t->id]) && is_constant(t, f->constant) && has_room(f, t);
        for (int k = 0; f->constant[t->id] && !ggl_is_of_weight(t) && k < ggl_n_reads(t); k++)
            if (ggl_read(t, k))
                f->part_of[ggl_read(t, k)->id] = true;
    }
}

/* The bytes of constants, and the largest one. */
typedef struct total {
    size_t bytes;
    const ggl_tensor *largest;
} total;

static void add_to(total *sum, const ggl_tensor *t, size_t size) {
    if (!ggl_size_add(sum->bytes, (size_t)ggl_count(t) * size,
                      &sum->bytes)) /* see GGL_MAX_ELEMENTS */
        sum->bytes = SIZE_MAX;
    if (!sum->largest || ggl_count(t) > ggl_count(sum->largest))
        sum->largest = t;
}

/* Sets f->nodes and f->wanted. Fails if all constants together exceed the limits. */
static bool collect(fold *f) {
    ggl_graph *g = f->g;
    total small = {0}, large = {0};
    find_constants(f);
    for (size_t i = 0; i < g->nodes.n; i++) {
        ggl_tensor *t = g->nodes.at[i];
        bool view = t->needed && !ggl_is_leaf(t) && t->view_of;
        bool unused = ggl_is_of_weight(t) && !f->part_of[t->id];
        if (!view && (!f->constant[t->id] || unused))
            continue;
        if (!push(g, &f->nodes, t))
            return false;
        if (!view && f->large[t->id])
            add_to(&large, t, sizeof(float));
        else if (!view)
            add_to(&small, t, sizeof(double));
    }
    return small.bytes > MOST_BYTES ? refuse_size(g, small.bytes, MOST_BYTES, small.largest)
           : large.bytes > MOST_PRODUCT_BYTES
               ? refuse_size(g, large.bytes, MOST_PRODUCT_BYTES, large.largest)
               : place_all_wanted(f, g->nodes.at, g->nodes.n);
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

/* Downloads the results and turns their nodes into constants. */
static ggl_status take_results(fold *f, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < f->wanted.n && s == GGL_OK; i++) {
        ggl_tensor *t = f->wanted.at[i];
        void *data =
            ggl_value_bytes(t, 1, &t->size) ? ggl_arena_alloc(&f->g->arena, t->size, 1) : NULL;
        if (!data)
            return ggl_fail(err, GGL_NOMEM, "out of memory for constants");
        s = f->b->v->download(f->b, f->region[GGL_REGION_IO], f->loc[t->id].offset, data, t->size,
                              err);
        t->data = data;
        t->op = GGL_OP_CONST;
        t->n_src = t->n_num = 0;
        t->body = NULL;
        t->gather = t->keeps_state = false;
    }
    return s;
}

/* Fails if the backend lacks an operator for one of f->nodes. */
static ggl_status check_refusals(const fold *f, ggl_error *err) {
    for (size_t i = 0; i < f->nodes.n; i++) {
        const ggl_tensor *part = NULL;
        const char *why = ggl_refusal(f->b, f->nodes.at[i], &part);
        char text[128];
        if (why)
            return ggl_fail(
                err, GGL_UNSUPPORTED, "%s does not run on %s, which computes constants: %s",
                ggl_node_text(part ? part : f->nodes.at[i], text, sizeof text), f->b->name, why);
    }
    return GGL_OK;
}

/* Runs f->nodes as one segment on the backend. */
static ggl_status compute(fold *f, ggl_error *err) {
    ggl_plan *plan = NULL;
    ggl_segment seg = {.graph = f->g,
                       .node = f->nodes.at,
                       .n_node = (int)f->nodes.n,
                       .n_max = 1,
                       .loc = f->loc,
                       .n_slots = 1};
    ggl_status s = check_refusals(f, err);
    if (s == GGL_OK)
        s = f->b->v->compile(f->b, &seg, &plan, err);
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
    if (plan)
        f->b->v->plan_free(f->b, plan);
    return s;
}

/* Computes the graph's constants on b, as numbers of that type. *more: some are left to another pass. */
static ggl_status pass(ggl_graph *g, ggl_backend *b, ggl_type type, bool no_products, bool *more,
                       ggl_error *err) {
    fold f = {.g = g, .b = b, .type = type, .no_products = no_products};
    f.loc = ggl_calloc((size_t)g->n_ids, sizeof *f.loc);
    f.constant = ggl_calloc((size_t)g->n_ids, sizeof *f.constant);
    f.large = ggl_calloc((size_t)g->n_ids, sizeof *f.large);
    f.part_of = ggl_calloc((size_t)g->n_ids, sizeof *f.part_of);
    f.n_regions = f.cap_regions = GGL_REGION_WEIGHT;
    f.region = ggl_calloc(f.n_regions, sizeof *f.region);
    ggl_status s = f.loc && f.constant && f.large && f.part_of && f.region
                       ? GGL_OK
                       : ggl_fail(err, GGL_NOMEM, "out of memory for constants");
    for (int i = 0; i < g->n_ids && f.loc; i++)
        f.loc[i].region = -1;
    if (s == GGL_OK && (!collect(&f) || !place_leaves(&f, f.nodes.at, f.nodes.n)))
        s = ggl_graph_error(g, err);
    if (s == GGL_OK && f.wanted.n)
        s = compute(&f, err);
    *more = f.more && f.wanted.n > 0;
    for (size_t i = 0; i < f.n_regions && f.region; i++)
        if (f.region[i])
            b->v->free(b, f.region[i]);
    ggl_free(f.region);
    ggl_free(f.loc);
    ggl_free(f.constant);
    ggl_free(f.large);
    ggl_free(f.part_of);
    ggl_free(f.nodes.at);
    ggl_free(f.wanted.at);
    ggl_free(f.leaves.at);
    ggl_graph_mark(g); /* nodes that only constants depended on are no longer needed */
    return s;
}

/* As many passes as it takes. */
static ggl_status passes(ggl_graph *g, ggl_backend *b, ggl_type type, bool no_products,
                         ggl_error *err) {
    bool more = true;
    ggl_status s = GGL_OK;
    while (more && s == GGL_OK)
        s = pass(g, b, type, no_products, &more, err);
    return s;
}

ggl_status ggl_graph_fold_by(ggl_graph *g, ggl_backend *b, ggl_backend *products, ggl_error *err) {
    if (!g->finished || g->settled)
        return ggl_fail(err, GGL_USAGE,
                        "a graph is folded once, after ggl_graph_finish and before ggl_sched_new");
    ggl_status s = passes(g, b, GGL_F64, products != NULL, err);
    if (s == GGL_OK)
        s = ggl_graph_settle(g, err);
    return s == GGL_OK && products ? passes(g, products, GGL_F32, false, err) : s;
}

ggl_status ggl_graph_fold(ggl_graph *g, ggl_backend *b, ggl_error *err) {
    return ggl_graph_fold_by(g, b, NULL, err);
}
