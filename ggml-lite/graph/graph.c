/* The graph builder. A graph owns its nodes, names and constants in one arena. The body of a call
 * is a list of nodes of the same graph. The graph keeps the first error; later calls return
 * NULL. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "ggl/internal/types.h"
#include "graph_impl.h"

/* Bytes of a graph's arena at most; GGL_MAX_NODES nodes with their metadata need less. */
#define ARENA_LIMIT ((size_t)1 << 30)

void ggl_graph_fill_default(ggl_graph_params *p, size_t size) {
    const ggl_graph_params d = {.size = sizeof(ggl_graph_params),
                                .n_pos = 4096,
                                .n_batch = 512,
                                .n_slots = 1,
                                .type_k = GGL_F16,
                                .type_v = GGL_F16};
    ggl_params_fill(p, size, &d, sizeof d);
}

static const char *type_name(ggl_type type) {
    const ggl_type_info *t = ggl_type_get((int)type);
    return t ? t->name : "one that does not exist";
}

ggl_graph *ggl_graph_new(const ggl_graph_params *params) {
    ggl_graph *g = ggl_calloc(1, sizeof *g);
    if (!g)
        return NULL;
    ggl_error err;
    g->params = ggl_graph_default();
    const ggl_status st = GGL_READ_PARAMS(ggl_graph_params, &g->params, params, &err);
    g->arena.limit = ARENA_LIMIT;
    g->group = -1;
    if (st != GGL_OK)
        ggl_graph_fail(g, st, "%s", err.msg);
    const ggl_graph_params *p = &g->params;
    if (p->n_pos < 1 || p->n_batch < 1 || p->n_slots < 1 || p->n_pos > INT32_MAX ||
        p->n_batch > INT32_MAX)
        ggl_graph_fail(g, GGL_USAGE,
                       "a graph needs between 1 and 2^31-1 positions, batch and slots; got %" PRId64
                       ", %" PRId64 ", %" PRId64,
                       p->n_pos, p->n_batch, p->n_slots);
    if (p->n_pool < 0 || p->n_stage_pool < 0)
        ggl_graph_fail(g, GGL_USAGE, "a graph's slots cannot share %" PRId64 " positions",
                       p->n_pool < 0 ? p->n_pool : p->n_stage_pool);
    if (p->n_stage_slots < 0 || p->n_stage_slots >= p->n_slots)
        ggl_graph_fail(g, GGL_USAGE,
                       "%" PRId64 " of %" PRId64 " slots cannot be for the rows of a stage",
                       p->n_stage_slots, p->n_slots);
    if (!ggl_store_can_keep(p->type_k) || !ggl_store_can_keep(p->type_v))
        ggl_graph_fail(g, GGL_UNSUPPORTED,
                       "a cache must be of type f32, f16, bf16, q8_0 or q4_0, not %s",
                       type_name(ggl_store_can_keep(p->type_k) ? p->type_v : p->type_k));
    return g;
}

static void body_free(open_body *b) {
    ggl_free(b->nodes.at);
    ggl_free(b->params.at);
    ggl_free(b->sources.at);
    ggl_free(b);
}

void ggl_graph_free(ggl_graph *g) {
    if (!g)
        return;
    for (open_body *b = g->body, *outer; b; b = outer) {
        outer = b->outer;
        body_free(b);
    }
    ggl_free(g->nodes.at);
    ggl_free(g->inputs.at);
    ggl_free(g->outputs.at);
    ggl_free(g->store);
    ggl_arena_fini(&g->arena);
    ggl_free(g);
}

const ggl_graph_params *ggl_graph_get_params(const ggl_graph *g) {
    return &g->params;
}

static void *no_memory(ggl_graph *g) {
    return ggl_graph_fail(g, GGL_NOMEM, "out of memory for the graph (%d nodes)", g->n_ids);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static bool list_push(ggl_graph *g, node_list *l, ggl_tensor *t) {
    if (!ggl_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at)) {
        no_memory(g);
        return false;
    }
    l->at[l->n++] = t;
    return true;
}

/* Returns a new node that is in no list yet; NULL on error. */
static ggl_tensor *node_new(ggl_graph *g, ggl_op op, ggl_type type) {
    if (g->error.status != GGL_OK)
        return NULL;
    if (g->finished)
        return ggl_graph_fail(g, GGL_USAGE, "the graph is finished; nothing can be added");
    if (g->n_ids >= GGL_MAX_NODES)
        return ggl_graph_fail(g, GGL_LIMIT, "the graph has more than %d nodes", GGL_MAX_NODES);
    ggl_tensor *t = ggl_arena_alloc(&g->arena, 1, sizeof *t);
    if (!t)
        return no_memory(g);
    *t = (ggl_tensor){.op = op,
                      .type = type,
                      .id = g->n_ids++,
                      .ne = {1, 1, 1, 1},
                      .group = g->group,
                      .origin = g->origin};
    return t;
}

/* Appends t to the innermost body, or, if t is a leaf, to the graph. Returns t, or NULL on
 * error. */
static ggl_tensor *node_add(ggl_graph *g, ggl_tensor *t) {
    bool outside = ggl_is_leaf(t) || !g->body;
    t->scope = outside ? 0 : g->body->scope;
    ggl_facts_init(t);
    if (!ggl_graph_bound(g, t))
        return NULL;
    return list_push(g, outside ? &g->nodes : &g->body->nodes, t) ? t : NULL;
}

/* Sets the shape of the leaf t; false if a dimension is out of range. */
static bool set_shape(ggl_graph *g, ggl_tensor *t, int n_dims, const int64_t *ne) {
    int most = t->op == GGL_OP_WEIGHT ? GGL_MAX_DIMS : GGL_BATCH_DIM;
    if (n_dims < 0 || n_dims > most) {
        ggl_graph_fail(g, GGL_SHAPE, "%d dimensions; %s at most %d", n_dims,
                       most == GGL_MAX_DIMS ? "a weight has" : "inputs and constants have", most);
        return false;
    }
    t->n_dims = n_dims;
    for (int d = 0; d < n_dims; d++) {
        if (ne[d] < 1 || ne[d] > INT32_MAX) {
            ggl_graph_fail(g, GGL_SHAPE, "dimension %d is %" PRId64 "; 1 to 2^31-1 are allowed", d,
                           ne[d]);
            return false;
        }
        t->ne[d] = ne[d];
    }
    return true;
}

/* Returns a copy of text that lives as long as the graph; NULL, with the graph's error set: out of
 * memory. */
static const char *own_text(ggl_graph *g, const char *text) {
    const char *own = ggl_arena_strndup(&g->arena, text, strlen(text));
    return own ? own : no_memory(g);
}

/* Makes an input, a weight or a constant; NULL on error. */
static ggl_tensor *leaf_new(ggl_graph *g, ggl_op op, const char *name, ggl_type type, int n_dims,
                            const int64_t *ne, bool batched) {
    ggl_tensor *t = node_new(g, op, type);
    if (!t || !set_shape(g, t, n_dims, ne))
        return NULL;
    if (name && !(t->name = own_text(g, name)))
        return NULL;
    if (batched)
        t->ne[GGL_BATCH_DIM] = GGL_N;
    return node_add(g, t);
}

ggl_tensor *ggl_graph_input(ggl_graph *g, const char *name, ggl_type type, int n_dims,
                            const int64_t *ne, bool batched) {
    if (g->error.status == GGL_OK && type != GGL_F32 && type != GGL_I32)
        return ggl_graph_fail(g, GGL_UNSUPPORTED, "input '%s': inputs must be f32 or i32", name);
    ggl_tensor *t = leaf_new(g, GGL_OP_INPUT, name, type, n_dims, ne, batched);
    if (t && name && strncmp(name, "stage.", 6) == 0)
        t->rows = GGL_ROWS_STAGE;
    return t && list_push(g, &g->inputs, t) ? t : NULL;
}

ggl_tensor *ggl_graph_weight(ggl_graph *g, const char *name, ggl_type type, int n_dims,
                             const int64_t *ne, const void *data) {
    if (!ggl_type_get(type))
        return ggl_graph_fail(
            g, GGL_UNSUPPORTED,
            "weight '%s' has the type number %d, which this version does not read", name,
            (int)type);
    ggl_tensor *t = leaf_new(g, GGL_OP_WEIGHT, name, type, n_dims, ne, false);
    if (!t)
        return NULL;
    if (!ggl_value_bytes(t, 1, &t->size))
        return ggl_graph_fail(
            g, GGL_SHAPE, "weight '%s': rows of %" PRId64 " are not a whole number of %s blocks",
            name, t->ne[0], ggl_type_get(type)->name);
    t->data = data;
    return t;
}

ggl_tensor *ggl_graph_variable(ggl_graph *g, const char *name, ggl_type type, int n_dims,
                               const int64_t *ne, void *data) {
    ggl_tensor *t = ggl_graph_weight(g, name, type, n_dims, ne, data);
    if (t)
        t->variable = true;
    return t;
}

ggl_tensor *ggl_graph_const(ggl_graph *g, int n_dims, const int64_t *ne, const double *data) {
    ggl_tensor *t = leaf_new(g, GGL_OP_CONST, NULL, GGL_F64, n_dims, ne, false);
    if (!t)
        return NULL;
    double *copy = ggl_value_bytes(t, 1, &t->size) ? ggl_arena_alloc(&g->arena, t->size, 1) : NULL;
    if (!copy)
        return no_memory(g);
    memcpy(copy, data, t->size);
    t->data = copy;
    return t;
}

/* --- operators -------------------------------------------------------------------------------- */

/* Adds a param to the body b that stands for `source`, which becomes a source of the call. */
static ggl_tensor *param_new(ggl_graph *g, open_body *b, ggl_tensor *source) {
    ggl_tensor *p = node_new(g, GGL_OP_PARAM, source->type);
    if (!p || !list_push(g, &b->sources, source) || !list_push(g, &b->params, p))
        return NULL;
    p->scope = b->scope;
    p->rows = source->rows;
    p->n_dims = source->n_dims;
    memcpy(p->ne, source->ne, sizeof p->ne);
    memcpy(p->dim_name, source->dim_name, sizeof p->dim_name);
    return p;
}

/* Returns the tensor by which nodes of the body b (NULL: the top level) read t: t itself if it is a
 * leaf or a node of b; for a node of an outer body, a param of b, as t becomes a source of every
 * call in between. NULL on error: t belongs to a body that is closed. */
static ggl_tensor *captured(ggl_graph *g, open_body *b, ggl_tensor *t) {
    if (!t || ggl_is_leaf(t) || t->scope == (b ? b->scope : 0))
        return t;
    if (!b)
        return ggl_graph_fail(g, GGL_USAGE, "a value of a call's body is used outside it");
    for (size_t i = 0; i < b->sources.n; i++)
        if (b->sources.at[i] == t)
            return b->params.at[i];
    ggl_tensor *outer = captured(g, b->outer, t);
    return outer ? param_new(g, b, outer) : NULL;
}

/* True if the operator takes source i_src in any type. All others are converted to f32 first. True
 * for sources that are only moved or converted, for the matrix of a product, for indices, and for
 * the supplied inputs. */
static bool takes_any_type(ggl_op op, int i_src) {
    switch (op) {
    case GGL_OP_CAST:
    case GGL_OP_RESHAPE:
    case GGL_OP_SPLIT:
    case GGL_OP_PICK:
        return true;
    case GGL_OP_LINEAR:
    case GGL_OP_LINEAR_BACK:
        return i_src == 1;
    case GGL_OP_OUTER_SUM:
        return i_src == OUTER_SUM_I;
    default:
        break;
    }
    return ggl_op_supplies(op, i_src);
}

/* True if the operator would cut a block of the quantized weight x, or a row that has a scale of its own, or pick single
 * elements of it. */
static bool cuts_blocks(ggl_op op, const ggl_tensor *x, const double *num) {
    int64_t block = ggl_type_get(x->type)->block;
    if (block == 1)
        return false;
    if (op == GGL_OP_PICK)
        return x->n_dims == 1;
    if (ggl_type_get(x->type)->row_meta > 0 &&
        ((op == GGL_OP_SPLIT && num[SPLIT_DIM] == 0) ||
         (op == GGL_OP_RESHAPE && num[RESHAPE_SIZE] != (double)x->ne[0])))
        return true;
    if (op == GGL_OP_SPLIT)
        return num[SPLIT_DIM] == 0 && (fmod(num[SPLIT_FIRST], (double)block) != 0 ||
                                       fmod(num[SPLIT_SIZE], (double)block) != 0);
    return op == GGL_OP_RESHAPE && fmod(num[RESHAPE_SIZE], (double)block) != 0;
}

/* Returns x, or a CAST of it to f32 if the operator cannot read x as it is. */
static ggl_tensor *cast_if_needed(ggl_graph *g, ggl_op op, int i_src, ggl_tensor *x,
                                  const double *num) {
    if (!x || x->type == GGL_F32 || x->type == GGL_F64)
        return x;
    if (takes_any_type(op, i_src) && !cuts_blocks(op, x, num))
        return x;
    if (x->type != GGL_I32 && ggl_is_batched(x))
        return x;
    return ggl_graph_op(g, GGL_OP_CAST, &x, 1, NULL, 0);
}

/* Returns the rows to which the new node t belongs, of whose sources the first n are set: those of the first batched
 * one. Attention belongs to its queries' rows. */
static ggl_rows rows_of(const ggl_tensor *t, int n) {
    for (int i = 0; i < n; i++)
        if (t->src[i] && (ggl_is_batched(t->src[i]) || t->src[i]->op == GGL_OP_CACHE))
            return t->src[i]->rows;
    return GGL_ROWS_MAIN;
}

/* Returns the graph's input "pos", "slot" or "end" of the kind of rows that the node t is made for, which the operator
 * reads without naming it; NULL, with the graph's error set, if it has not been declared as it must be. "end" may be absent.
 * The input "page" does not exist before the graph is finished (store_sizes.c). n: sources that are set. */
static ggl_tensor *supplied(ggl_graph *g, const ggl_tensor *t, int n, const char *name) {
    static const char *const before[GGL_ROWS_COUNT] = {"", "stage.", "read."};
    char full[16];
    if (strcmp(name, "page") == 0)
        return NULL;
    const bool is_end = strcmp(name, "end") == 0, is_pos = strcmp(name, "pos") == 0;
    ggl_rows rows = rows_of(t, n);
    if (t->op == GGL_OP_ATTEND && !is_pos && rows == GGL_ROWS_MAIN && n > ATTEND_KV &&
        t->src[ATTEND_KV] && t->src[ATTEND_KV]->rows == GGL_ROWS_STAGE)
        rows = GGL_ROWS_READ;
    snprintf(full, sizeof full, "%s%s", before[rows], name);
    ggl_tensor *x = ggl_graph_find_input(g, full);
    if (!x && is_end)
        return NULL;
    if (!x)
        return ggl_graph_fail(
            g, GGL_USAGE, "%s needs an input named '%s', made before: i32, batched, no dimensions",
            ggl_op_get(t->op).name, full);
    if (x->type != GGL_I32 || x->n_dims != 0 || !ggl_is_batched(x))
        return ggl_graph_fail(g, GGL_USAGE,
                              "the input '%s' must be i32, batched, without dimensions", full);
    *(is_end ? &g->end[rows] : is_pos ? &g->pos[rows] : &g->slot[rows]) = x;
    return x;
}

/* Puts the arguments in the signature's order into t->src and t->num. */
static bool bind_arguments(ggl_graph *g, ggl_tensor *t, ggl_tensor *const *src, int n_src,
                           const double *num, int n_num) {
    ggl_op_info info = ggl_op_get(t->op);
    int i_src = 0, i_num = 0;
    for (int k = 0; k < info.n_params; k++) {
        ggl_param p = ggl_op_param(t->op, k);
        if (p.kind == GGL_PARAM_NUMBER) {
            if (p.variadic && i_num >= n_num) /* no sizes: one number */
                continue;
            do
                t->num[t->n_num++] = i_num < n_num && !isnan(num[i_num]) ? num[i_num] : p.fallback;
            while (++i_num < n_num && p.variadic);
            if (isnan(t->num[t->n_num - 1]) && !p.optional)
                return ggl_graph_fail(g, GGL_USAGE, "%s: the number '%s' is missing", info.name,
                                      p.name);
            continue;
        }
        ggl_tensor *x = p.kind == GGL_PARAM_SUPPLIED ? supplied(g, t, t->n_src, p.name)
                        : i_src < n_src              ? src[i_src]
                                                     : NULL;
        i_src += p.kind == GGL_PARAM_TENSOR;
        if (!x && p.supplied[0])
            x = supplied(g, t, t->n_src, p.supplied);
        if (!x && !p.optional)
            return ggl_graph_fail(g, GGL_USAGE, "%s: the argument '%s' is missing", info.name,
                                  p.name);
        t->src[t->n_src++] = x;
    }
    if (i_src < n_src || i_num < n_num)
        return ggl_graph_fail(g, GGL_USAGE, "%s(%s): too many arguments", info.name,
                              info.signature);
    return true;
}

/* Makes store k of the node t, for rows shaped like `like` (or a state of that shape). */
static bool make_store(ggl_graph *g, ggl_tensor *t, int k, ggl_store_kind kind, ggl_type type,
                       const ggl_tensor *like, const char *what) {
    ggl_store *s = ggl_arena_alloc(&g->arena, 1, sizeof *s);
    size_t row;
    if (kind != GGL_STORE_STATE && !ggl_row_size_checked(type, like->ne[0], &row))
        return ggl_graph_fail(g, GGL_UNSUPPORTED,
                              "%s with heads of %" PRId64
                              " elements cannot be cached as %s, which needs multiples of %" PRId64
                              " (most models have heads of 64 or 128); f16 and bf16 accept any",
                              what, like->ne[0], ggl_type_get(type)->name,
                              ggl_type_get(type)->block);
    if (!s || !ggl_grow(&g->store, &g->cap_stores, g->n_stores + 1, sizeof *g->store))
        return no_memory(g);
    *s = (ggl_store){.kind = kind, .type = type, .group = t->group, .n_pos = 1};
    s->of_stage = t->rows == GGL_ROWS_STAGE;
    memcpy(s->ne, like->ne, sizeof s->ne);
    s->name = ggl_arena_printf(&g->arena, t->group < 0 ? "%s" : "%s of group %d", what, t->group);
    if (!s->name)
        return no_memory(g);
    g->store[g->n_stores++] = s;
    t->store[k] = s;
    return true;
}

/* True if v is the leading part of the keys k, as in latent attention: then one store holds
 * both. */
static bool is_prefix(const ggl_tensor *v, const ggl_tensor *k) {
    return v->op == GGL_OP_SPLIT && v->src[0] == k && v->num[SPLIT_DIM] == 0 &&
           v->num[SPLIT_FIRST] == 0;
}

/* Makes the stores of t if it is a STATE or a CACHE. */
static bool make_stores(ggl_graph *g, ggl_tensor *t) {
    if (t->op == GGL_OP_STATE) {
        if (!g->body)
            return ggl_graph_fail(g, GGL_USAGE, "a state is allowed only in the body of a call");
        g->body->recurrent = true;
        if (g->body->chunk > 0)
            return true;
        return make_store(g, t, 0, GGL_STORE_STATE, GGL_F32, t, "state");
    }
    if (t->op != GGL_OP_CACHE)
        return true;
    if (g->body)
        return ggl_graph_fail(g, GGL_USAGE, "a cache is not allowed in the body of a call");
    /* rows that all see each other are not kept for later tokens, so there is no reason to round them */
    const bool keeps = t->rows == GGL_ROWS_MAIN && !ggl_graph_find_input(g, "end");
    return make_store(g, t, 0, GGL_STORE_KEYS, keeps ? g->params.type_k : GGL_F32, t->src[0],
                      "keys") &&
           (is_prefix(t->src[CACHE_V], t->src[CACHE_K]) ||
            make_store(g, t, 1, GGL_STORE_VALUES, keeps ? g->params.type_v : GGL_F32,
                       t->src[CACHE_V], "values"));
}

/* Names each dimension of t after a source's dimension of the same size: the one with the same
 * index if there is one, else any. */
static void name_dims(ggl_tensor *t) {
    for (int d = 0; d < t->n_dims; d++)
        for (int pass = 0; pass < 2 && !t->dim_name[d]; pass++)
            for (int i = 0; i < t->n_src && !t->dim_name[d]; i++)
                for (int e = 0; t->src[i] && e < t->src[i]->n_dims && !t->dim_name[d]; e++)
                    if (t->src[i]->ne[e] == t->ne[d] && t->ne[d] > 1 && (pass || e == d))
                        t->dim_name[d] = t->src[i]->dim_name[e];
}

/* Returns the type of t's result, by the operator's rule in ops.def. */
static ggl_type result_type(const ggl_tensor *t) {
    static const enum {
        f32,
        i32,
        as_x,
        none
    } rule[GGL_OP_COUNT] = {
#define OP(ID, name, signature, rule_, result, bits, kind, text) [GGL_OP_##ID] = result,
#include "ggl/ops.def"
#undef OP
    };
    bool same = rule[t->op] == as_x && t->src[0];
    if (t->op == GGL_OP_PICK && ggl_is_batched(t) && t->src[0]->n_dims < 3)
        /* rows are decoded to floats; whole matrices stay as they are */
        return t->src[0]->type == GGL_I32 ? GGL_I32 : GGL_F32;
    return rule[t->op] == i32 ? GGL_I32 : same ? t->src[0]->type : GGL_F32;
}

/* The weight that the value is, or lies in, or picks matrices of; NULL: none. */
static const ggl_tensor *weight_of(const ggl_tensor *t) {
    return t->gather ? t->src[0]->view_of : t->view_of;
}

ggl_tensor *ggl_graph_op(ggl_graph *g, ggl_op op, ggl_tensor *const *src, int n_src,
                         const double *num, int n_num) {
    ggl_tensor *t = node_new(g, op, GGL_F32);
    if (!t)
        return NULL;
    ggl_op_info info = ggl_op_get(op);
    t->src = ggl_arena_alloc(&g->arena, (size_t)info.n_params + 1, sizeof *t->src);
    t->num = ggl_arena_alloc(&g->arena, (size_t)(info.n_params + n_num), sizeof *t->num);
    if (!t->src || !t->num)
        return no_memory(g);
    if (!bind_arguments(g, t, src, n_src, num, n_num))
        return NULL;
    for (int i = 0; i < t->n_src; i++) {
        bool absent = !t->src[i];
        const ggl_tensor *of = absent ? NULL : weight_of(t->src[i]);
        if (of && of->assigned)
            return ggl_graph_fail(g, GGL_USAGE, "%s reads the variable '%s' after it is assigned",
                                  info.name, of->name);
        t->src[i] = cast_if_needed(g, op, i, captured(g, g->body, t->src[i]), t->num);
        if (!t->src[i] && !absent)
            return NULL;
    }
    for (int i = 0; i < t->n_src; i++)
        if (t->src[i] && ggl_is_batched(t->src[i]))
            t->ne[GGL_BATCH_DIM] = GGL_N;
    t->rows = rows_of(t, t->n_src);
    if (!ggl_shape_infer(g, t))
        return NULL;
    t->type = result_type(t);
    name_dims(t);
    return make_stores(g, t) ? node_add(g, t) : NULL;
}

/* --- bodies ----------------------------------------------------------------------------------- */

/* Closes the innermost body, which failed to begin; returns NULL. */
static void *body_drop(ggl_graph *g) {
    open_body *b = g->body;
    g->body = b->outer;
    body_free(b);
    return NULL;
}

ggl_tensor **ggl_body_begin(ggl_graph *g, ggl_tensor *const *src, int n_src) {
    if (g->error.status != GGL_OK)
        return NULL;
    open_body *b = ggl_calloc(1, sizeof *b);
    if (!b)
        return no_memory(g);
    b->outer = g->body;
    b->scope = ++g->n_scopes;
    g->body = b;
    for (int i = 0; i < n_src; i++) {
        ggl_tensor *x = captured(g, b->outer, src[i]);
        if (!x || !param_new(g, b, x)) {
            ggl_graph_fail(g, GGL_USAGE, "a call's source is missing");
            return body_drop(g);
        }
    }
    if (!ggl_grow(&b->params.at, &b->params.cap, 1, sizeof *b->params.at)) {
        no_memory(g);
        return body_drop(g);
    }
    return b->params.at;
}

static bool has_call_with_state(const node_list *l) {
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i]->keeps_state)
            return true;
    return false;
}

/* Drops the nodes of a body that will never run: neither the result nor a KEEP depends on them. So
 * code that walks through a body need not skip them. */
static void drop_unread(open_body *b, ggl_tensor *result) {
    node_list *l = &b->nodes;
    size_t n = 0, n_forward = 0;
    result->needed = true;
    for (size_t i = l->n; i-- > 0;) {
        ggl_tensor *t = l->at[i];
        t->needed |= t->op == GGL_OP_KEEP;
        for (int k = 0; k < t->n_src && t->needed; k++)
            if (t->src[k])
                t->src[k]->needed = true;
    }
    for (size_t i = 0; i < l->n; i++) {
        n_forward += i < b->n_forward && l->at[i]->needed;
        if (l->at[i]->needed)
            l->at[n++] = l->at[i];
    }
    l->n = n;
    b->n_forward = n_forward;
}

static ggl_tensor **copy_list(ggl_graph *g, const node_list *l) {
    ggl_tensor **at = ggl_arena_alloc(&g->arena, l->n + 1, sizeof *at);
    if (at && l->n)
        memcpy(at, l->at, l->n * sizeof *at);
    return at;
}

/* Makes the CALL node for the body b, which ends here; NULL on error. */
static ggl_tensor *call_new(ggl_graph *g, open_body *b, const char *name, ggl_tensor *result,
                            const double *num, int n_num) {
    ggl_tensor *t = node_new(g, GGL_OP_CALL, result->type);
    ggl_body *body = ggl_arena_alloc(&g->arena, 1, sizeof *body);
    if (!t || !body)
        return no_memory(g);
    *body = (ggl_body){.param = copy_list(g, &b->params),
                       .n_param = (int)b->params.n,
                       .node = copy_list(g, &b->nodes),
                       .n_node = (int)b->nodes.n,
                       .result = result,
                       .recurrent = b->recurrent,
                       .chunk = b->recurrent ? b->chunk : 0,
                       .n_forward = (int)b->n_forward};
    t->src = copy_list(g, &b->sources);
    t->n_src = (int)b->sources.n;
    t->num = ggl_arena_alloc(&g->arena, (size_t)n_num + 1, sizeof *t->num);
    if (!body->param || !body->node || !t->src || !t->num)
        return no_memory(g);
    if (n_num)
        memcpy(t->num, num, (size_t)n_num * sizeof *num);
    t->n_num = n_num;
    t->body = body;
    t->keeps_state = b->recurrent || has_call_with_state(&b->nodes);
    if (name && !(t->call = own_text(g, name)))
        return NULL;
    t->rows = rows_of(t, t->n_src);
    t->n_dims = result->n_dims;
    memcpy(t->ne, result->ne, sizeof t->ne);
    memcpy(t->dim_name, result->dim_name, sizeof t->dim_name);
    if (b->recurrent) /* even one that reads no argument depends on the element before */
        t->ne[GGL_BATCH_DIM] = GGL_N;
    return node_add(g, t);
}

ggl_tensor *ggl_body_end(ggl_graph *g, const char *name, ggl_tensor *result, const double *num,
                         int n_num) {
    open_body *b = g->body;
    if (!b) /* begin ran out of memory */
        return NULL;
    ggl_tensor *t = NULL;
    if (g->error.status == GGL_OK && result)
        result = captured(g, b, result);
    bool nested = b->recurrent && has_call_with_state(&b->nodes);
    g->body = b->outer;
    if (nested)
        ggl_graph_fail(g, GGL_USAGE, "a recurrent function cannot call another");
    else if (g->error.status == GGL_OK && !result)
        ggl_graph_fail(g, GGL_USAGE, "a call has no result");
    else if (g->error.status == GGL_OK) {
        drop_unread(b, result);
        t = call_new(g, b, name, result, num, n_num);
    }
    body_free(b);
    return t;
}

/* True if x is the variable, or its elements in another shape. */
static bool is_all_of(const ggl_tensor *x, const ggl_tensor *variable) {
    while (x->op == GGL_OP_RESHAPE && x->view_of == variable)
        x = x->src[0];
    return x == variable;
}

/* True if the node can write element after element over the variable while it reads it: it reads the same element, or nothing
 * of it. */
static bool can_write_over(const ggl_tensor *t, const ggl_tensor *variable) {
    const ggl_op_kind kind = ggl_op_get(t->op).kind;
    for (int k = 0; k < t->n_src; k++)
        if (t->src[k] && t->src[k]->view_of == variable &&
            !(t->op == GGL_OP_OUTER_SUM ? k == OUTER_SUM_INTO && is_all_of(t->src[k], variable)
                                        : kind == GGL_KIND_ELEMENT && t->src[k] == variable))
            return false;
    return t->op != GGL_OP_CALL;
}

/* True if a node that was made after t reads the variable. It has to run before the variable is written, so t cannot be written there
 * itself: t may run earlier. */
static bool is_read_later(const ggl_graph *g, const ggl_tensor *t, const ggl_tensor *variable) {
    for (size_t i = g->nodes.n; i-- > 0 && g->nodes.at[i] != t;)
        for (int k = 0; k < g->nodes.at[i]->n_src; k++) {
            const ggl_tensor *x = g->nodes.at[i]->src[k];
            if (x && weight_of(x) == variable)
                return true;
        }
    return false;
}

/* Sets the graph's error if `value` cannot be assigned to the variable. */
static bool check_assignment(ggl_graph *g, const ggl_tensor *variable, const ggl_tensor *value) {
    char have[256], want[256];
    if (!variable->variable || variable->type != GGL_F32)
        ggl_graph_fail(g, GGL_USAGE, "'%s' is no variable of type f32, so no run can write it",
                       variable->name ? variable->name : ggl_op_get(variable->op).name);
    else if (variable->assigned || g->body)
        ggl_graph_fail(g, GGL_USAGE, "variable '%s' is assigned %s", variable->name,
                       g->body ? "in the body of a call" : "twice");
    else if (ggl_is_batched(value) || value->n_dims != variable->n_dims ||
             memcmp(value->ne, variable->ne, sizeof value->ne) != 0)
        ggl_graph_fail(g, GGL_SHAPE, "variable '%s' of %s is assigned %s%s", variable->name,
                       ggl_shape_text(variable, want, sizeof want),
                       ggl_shape_text(value, have, sizeof have),
                       ggl_is_batched(value) ? ", a value for each element of the batch" : "");
    return g->error.status == GGL_OK;
}

bool ggl_graph_assign(ggl_graph *g, ggl_tensor *variable, ggl_tensor *value) {
    if (!variable || !value || g->error.status != GGL_OK || !check_assignment(g, variable, value))
        return false;
    while (value->op == GGL_OP_RESHAPE && !value->view_of && !value->src[0]->view_of &&
           !ggl_is_leaf(value->src[0])) /* the same elements, in the same order */
        value = value->src[0];
    bool is_output = false;
    for (size_t i = 0; i < g->outputs.n; i++)
        is_output |= g->outputs.at[i] == value;
    /* what has no step of its own, or its memory elsewhere, is copied */
    if (ggl_is_leaf(value) || value->view_of || value->gather || value->into || value->scope ||
        is_output || value->type != GGL_F32 || value->op == GGL_OP_RESHAPE ||
        value->op == GGL_OP_SPLIT || !can_write_over(value, variable) ||
        is_read_later(g, value, variable))
        value = ggl_binary(g, GGL_OP_MUL, value, ggl_graph_number(g, 1));
    if (!value)
        return false;
    variable->assigned = true;
    value->into = variable;
    return true;
}

ggl_tensor *ggl_graph_output(ggl_graph *g, const char *name, ggl_tensor *t) {
    if (!t || g->error.status != GGL_OK)
        return NULL;
    const char *fault = ggl_output_fault(t);
    if (fault)
        return ggl_graph_fail(g, GGL_USAGE, "output '%s' %s", name, fault);
    ggl_tensor_set_name(g, t, name);
    return list_push(g, &g->outputs, t) ? t : NULL;
}

bool ggl_graph_replace_output(ggl_graph *g, int i, const char *name, ggl_tensor *t) {
    if (!ggl_graph_output(g, name, t))
        return false;
    g->outputs.at[i] = g->outputs.at[--g->outputs.n];
    return true;
}

void ggl_graph_set_group(ggl_graph *g, int group) {
    g->group = group;
}

void ggl_graph_set_origin(ggl_graph *g, const char *origin) {
    if (origin && g->origin && strcmp(origin, g->origin) == 0)
        return;
    g->origin = origin ? own_text(g, origin) : NULL;
}

void ggl_tensor_set_name(ggl_graph *g, ggl_tensor *t, const char *name) {
    if (t)
        t->name = own_text(g, name);
}

void ggl_tensor_set_dim_name(ggl_graph *g, ggl_tensor *t, int dim, const char *name) {
    if (t && dim >= 0 && dim < GGL_MAX_DIMS)
        t->dim_name[dim] = own_text(g, name);
}

/* --- finishing -------------------------------------------------------------------------------- */

int ggl_graph_n_ids(const ggl_graph *g) {
    return g->n_ids;
}
int ggl_graph_n_nodes(const ggl_graph *g) {
    return (int)g->nodes.n;
}
ggl_tensor *ggl_graph_node(const ggl_graph *g, int i) {
    return g->nodes.at[i];
}
int ggl_graph_n_outputs(const ggl_graph *g) {
    return (int)g->outputs.n;
}
ggl_tensor *ggl_graph_get_output(const ggl_graph *g, int i) {
    return g->outputs.at[i];
}
int ggl_graph_n_inputs(const ggl_graph *g) {
    return (int)g->inputs.n;
}
ggl_tensor *ggl_graph_get_input(const ggl_graph *g, int i) {
    return g->inputs.at[i];
}
int ggl_graph_n_stores(const ggl_graph *g) {
    return (int)g->n_stores;
}
ggl_store *ggl_graph_store(const ggl_graph *g, int i) {
    return g->store[i];
}
int64_t ggl_graph_n_pages(const ggl_graph *g) {
    const int64_t main = g->n_pages[GGL_ROWS_MAIN], stage = g->n_pages[GGL_ROWS_STAGE];
    return main > stage ? main : stage;
}
int64_t ggl_graph_n_pages_of(const ggl_graph *g, ggl_rows rows) {
    return g->n_pages[rows];
}

ggl_tensor *ggl_graph_find_input(const ggl_graph *g, const char *name) {
    for (size_t i = 0; i < g->inputs.n; i++)
        if (strcmp(g->inputs.at[i]->name, name) == 0)
            return g->inputs.at[i];
    return NULL;
}
