/* Graphs as bytes. Tensors are written in an order in which each comes after those that it names, and are named by their
 * place in this order. What the builder derives (facts.c) is derived again by the reader. */
#include "ggl/internal/image.h"

#include <inttypes.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"
#include "graph_impl.h"

static const char magic[8] = "graph 1";

/* --- writing ---------------------------------------------------------------------------------- */

enum { MOST_STUBS = 64 }; /* more than any operator has sources */

typedef struct writer {
    ggl_bytes *out;
    uint32_t *place; /* by id: the tensor's place in the order, from 1 on; 0: not written yet */
    uint32_t n;      /* tensors written */
    ggl_store *const *store;
    size_t n_stores;
    /* Values that are written as inputs of their shape, without what they are computed from. */
    const ggl_tensor *stub[MOST_STUBS];
    int n_stubs;
    /* A node alone: numbers and names that tell layers apart are left out, so that nodes that are alike have the same image. */
    bool is_alone;
} writer;

static bool is_stub(const writer *w, const ggl_tensor *t) {
    for (int i = 0; i < w->n_stubs; i++)
        if (w->stub[i] == t)
            return true;
    return false;
}

/* 0 stands for no tensor. */
static void put_place(writer *w, const ggl_tensor *t) {
    ggl_put_u32(w->out, t ? w->place[t->id] : 0);
}

static void put_places(writer *w, ggl_tensor *const *t, int n) {
    ggl_put_u32(w->out, (uint32_t)n);
    for (int i = 0; i < n; i++)
        put_place(w, t[i]);
}

/* Writes the number of a store, from 1 on. 0: none, or one that no needed node uses. */
static void put_store(writer *w, const ggl_store *s) {
    uint32_t k = 0;
    while (s && k < w->n_stores && w->store[k] != s)
        k++;
    ggl_put_u32(w->out, s && k < w->n_stores ? k + 1 : 0);
}

/* A CALL's body, whose tensors are written. */
static void put_body(writer *w, const ggl_body *b) {
    ggl_put_u32(w->out, b->recurrent);
    ggl_put_u64(w->out, (uint64_t)b->chunk);
    ggl_put_u32(w->out, (uint32_t)b->n_forward);
    put_places(w, b->param, b->n_param);
    put_places(w, b->node, b->n_node);
    put_place(w, b->result);
}

static void put_all(writer *w, ggl_tensor *const *t, int n);

/* Writes t, after all that it names. */
static void put_tensor(writer *w, ggl_tensor *t) {
    if (!t || w->place[t->id] || w->out->failed)
        return;
    ggl_tensor as = *t;
    if (is_stub(w, t)) {
        as.op = GGL_OP_INPUT;
        as.name = "value";
        as.n_src = as.n_num = 0;
        as.store[0] = as.store[1] = NULL;
        as.body = NULL;
        as.call = NULL;
        as.computed = as.gather = false;
    }
    put_all(w, as.src, as.n_src);
    if (w->is_alone) {
        as.group = -1;
        as.scope = 0;
        as.origin = NULL;
        as.name = as.op == GGL_OP_INPUT ? as.name : NULL;
    }
    if (as.body) {
        put_all(w, as.body->param, as.body->n_param);
        put_all(w, as.body->node, as.body->n_node);
        put_tensor(w, as.body->result);
    }
    as.id = w->is_alone ? (int)w->n : t->id;
    w->place[t->id] = ++w->n;
    ggl_put_u32(w->out, as.op);
    ggl_put_u32(w->out, as.type);
    ggl_put_u32(w->out, (uint32_t)as.id);
    ggl_put_u32(w->out, (uint32_t)as.n_dims);
    ggl_put(w->out, as.ne, sizeof as.ne);
    ggl_put_u32(w->out, (uint32_t)as.group);
    ggl_put_u32(w->out, (uint32_t)as.scope);
    ggl_put_u32(w->out, as.rows);
    ggl_put_u32(w->out, as.needed | (uint32_t)as.computed << 1);
    ggl_put_text(w->out, as.name);
    ggl_put_text(w->out, as.origin);
    ggl_put_text(w->out, as.call);
    put_places(w, as.src, as.n_src);
    ggl_put_u32(w->out, (uint32_t)as.n_num);
    ggl_put(w->out, as.num, (size_t)as.n_num * sizeof *as.num);
    for (int k = 0; k < 2; k++)
        put_store(w, as.store[k]);
    ggl_put_u32(w->out, as.body != NULL);
    if (as.body)
        put_body(w, as.body);
    if (as.op == GGL_OP_CONST) {
        ggl_put_u64(w->out, as.size);
        ggl_put(w->out, as.data, as.size);
    }
}

static void put_all(writer *w, ggl_tensor *const *t, int n) {
    for (int i = 0; i < n; i++)
        put_tensor(w, t[i]);
}

static void put_stores(writer *w) {
    ggl_put_u32(w->out, (uint32_t)w->n_stores);
    for (size_t i = 0; i < w->n_stores; i++) {
        ggl_store s = *w->store[i];
        ggl_put_text(w->out, w->is_alone ? "store" : s.name);
        s.name = NULL;
        s.id = (int)i;
        s.group = w->is_alone ? -1 : s.group;
        ggl_put(w->out, &s, sizeof s);
    }
}

static ggl_status out_of_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the bytes of a graph");
}

/* Writes all of g, or what is in it. */
static ggl_status put_graph(writer *w, const ggl_graph *g, ggl_error *err) {
    w->place = ggl_calloc((size_t)g->n_ids, sizeof *w->place);
    if (!w->place)
        return out_of_memory(err);
    w->store = g->store;
    w->n_stores = g->n_stores;
    ggl_put(w->out, magic, sizeof magic);
    ggl_put(w->out, &g->params, sizeof g->params);
    ggl_put(w->out, g->n_pages, sizeof g->n_pages);
    put_stores(w);
    const size_t count = w->out->n;
    ggl_put(w->out, (uint32_t[3]){0}, sizeof(uint32_t[3]));
    put_all(w, g->nodes.at, (int)g->nodes.n);
    put_places(w, g->nodes.at, (int)g->nodes.n);
    put_places(w, g->inputs.at, (int)g->inputs.n);
    put_places(w, g->outputs.at, (int)g->outputs.n);
    for (int k = 0; k < GGL_ROWS_COUNT; k++) {
        put_place(w, g->pos[k]);
        put_place(w, g->slot[k]);
        put_place(w, g->end[k]);
    }
    put_place(w, g->page);
    const uint32_t n[3] = {w->is_alone ? w->n : (uint32_t)g->n_ids, (uint32_t)g->n_scopes, w->n};
    if (!w->out->failed)
        memcpy(w->out->at + count, n, sizeof n);
    ggl_free(w->place);
    return w->out->failed ? out_of_memory(err) : GGL_OK;
}

ggl_status ggl_graph_image(const ggl_graph *g, ggl_bytes *out, ggl_error *err) {
    writer w = {.out = out};
    return put_graph(&w, g, err);
}

/* Returns the largest id of t and of what it is made of, down to the stubs. */
static int largest_id(const writer *w, const ggl_tensor *t, bool whole) {
    int most = t ? t->id : 0;
    if (!t || (!whole && is_stub(w, t)))
        return most;
    for (int k = 0; k < t->n_src; k++) {
        const int id = largest_id(w, t->src[k], false);
        most = id > most ? id : most;
    }
    const ggl_body *b = t->body;
    for (int k = 0; b && k < b->n_param + b->n_node; k++) {
        const int id = largest_id(w, k < b->n_param ? b->param[k] : b->node[k - b->n_param], false);
        most = id > most ? id : most;
    }
    if (b && largest_id(w, b->result, false) > most)
        most = largest_id(w, b->result, false);
    return most;
}

/* Makes stubs of the computed sources of t, but not of a cache, whose rows attention reads. */
static void stub_sources(writer *w, const ggl_tensor *t) {
    for (int k = 0; k < t->n_src; k++) {
        const ggl_tensor *x = t->src[k];
        if (x && x->op == GGL_OP_CACHE)
            stub_sources(w, x);
        else if (x && x->gather && w->n_stubs < MOST_STUBS) /* which the node may read itself */
            stub_sources(w, x);
        else if (x && !ggl_is_leaf(x) && !x->view_of && x->op != GGL_OP_PARAM &&
                 x->op != GGL_OP_STATE && w->n_stubs < MOST_STUBS)
            w->stub[w->n_stubs++] = x;
    }
}

/* Adds the stores of t, of what it reads them from, and of its body; further ones are left out. */
static void add_stores(const ggl_tensor *t, ggl_store **store, size_t *n) {
    for (int k = 0; k < 2; k++)
        if (t->store[k] && t->store[k]->size > 0 && *n < MOST_STUBS) /* else: it is in no use */
            store[(*n)++] = t->store[k];
    for (int k = 0; k < t->n_src; k++)
        if (t->src[k] && (t->src[k]->op == GGL_OP_CACHE || t->src[k]->op == GGL_OP_STATE))
            add_stores(t->src[k], store, n);
    for (int k = 0; t->body && k < t->body->n_node; k++)
        if (t->body->node[k]->op == GGL_OP_STATE || t->body->node[k]->body)
            add_stores(t->body->node[k], store, n);
}

ggl_status ggl_node_image(ggl_tensor *t, ggl_bytes *out, ggl_error *err) {
    writer w = {.out = out, .is_alone = true};
    ggl_graph g = {.params = ggl_graph_default(), .finished = true};
    ggl_store *store[MOST_STUBS];
    stub_sources(&w, t);
    add_stores(t, store, &g.n_stores);
    g.store = store;
    g.nodes = g.outputs = (node_list){&t, 1, 1};
    g.n_ids = largest_id(&w, t, true) + 1;
    return put_graph(&w, &g, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct loader {
    ggl_graph *g;
    const char *begin;
    ggl_reader r;
    ggl_tensor **at; /* by place - 1 */
    bool *has_id;    /* by id: a tensor has it */
    uint32_t n;      /* tensors that are read */
} loader;

/* Sets the graph's error; returns NULL. */
static void *damaged(loader *l, const char *what) {
    return ggl_graph_fail(l->g, GGL_FORMAT, "the bytes of a graph are damaged at byte %td: %s",
                          l->r.at - l->begin, what);
}

static void *no_memory(loader *l) {
    return ggl_graph_fail(l->g, GGL_NOMEM, "out of memory for a graph");
}

static bool ok(const loader *l) {
    return !l->r.failed && l->g->error.status == GGL_OK;
}

/* Returns a tensor that is read already; NULL: none, or an error. */
static ggl_tensor *get_place(loader *l) {
    const uint32_t place = ggl_get_u32(&l->r);
    if (place > l->n)
        return damaged(l, "a tensor is named before it comes");
    return place ? l->at[place - 1] : NULL;
}

/* Reads a list of tensors into the arena; every one must be there if `all`. */
static ggl_tensor **get_places(loader *l, int *n, bool all) {
    const uint32_t count = ggl_get_u32(&l->r);
    *n = 0;
    if (l->r.failed || count > (size_t)(l->r.end - l->r.at) / sizeof(uint32_t))
        return damaged(l, "a list of tensors is cut off");
    ggl_tensor **list = ggl_arena_alloc(&l->g->arena, (size_t)count + 1, sizeof *list);
    if (!list)
        return no_memory(l);
    for (uint32_t i = 0; i < count; i++) {
        list[i] = get_place(l);
        if (all && !list[i])
            return damaged(l, "a tensor is missing in a list");
    }
    *n = (int)count;
    return list;
}

static const char *get_name(loader *l) {
    const ggl_str s = ggl_get_text(&l->r);
    const char *own = s.s ? ggl_arena_strndup(&l->g->arena, s.s, s.n) : NULL;
    return s.s && !own ? no_memory(l) : own;
}

static ggl_store *get_store(loader *l) {
    const uint32_t k = ggl_get_u32(&l->r);
    if (k > l->g->n_stores)
        return damaged(l, "there is no such store");
    return k ? l->g->store[k - 1] : NULL;
}

static bool get_stores(loader *l) {
    ggl_graph *g = l->g;
    const uint32_t n = ggl_get_u32(&l->r);
    if (n > (size_t)(l->r.end - l->r.at) / sizeof(ggl_store))
        return damaged(l, "the stores are cut off") != NULL;
    if (!ggl_grow(&g->store, &g->cap_stores, n, sizeof *g->store))
        return no_memory(l) != NULL;
    for (uint32_t i = 0; i < n && ok(l); i++) {
        const char *name = get_name(l);
        ggl_store *s = ggl_arena_alloc(&g->arena, 1, sizeof *s);
        size_t slot = 0;
        if (!s)
            return no_memory(l) != NULL;
        ggl_get_to(&l->r, s, sizeof *s);
        s->name = name;
        const bool fits = (int)s->kind >= 0 && s->kind <= GGL_STORE_STATE && s->id == (int)i &&
                          s->ne[0] > 0 && s->ne[1] > 0 && s->ne[2] > 0 && s->n_pos > 0 &&
                          (s->kind == GGL_STORE_STATE
                               ? s->type == GGL_F32
                               : ggl_store_can_keep(s->type) && s->n_pos % GGL_PAGE == 0) &&
                          ggl_store_size(s, s->n_pos, &slot) && slot <= s->slot_size &&
                          s->slot_size <= s->size + (s->size == 0);
        if (!fits || !name)
            return damaged(l, "a store has no possible size") != NULL;
        g->store[g->n_stores++] = s;
    }
    return ok(l);
}

/* True if the operator t has as many sources and numbers as its signature says, and what it needs of them. */
static bool has_arguments(const ggl_tensor *t) {
    int n_src = 0, n_num = 0;
    bool variadic = false;
    const int n = ggl_op_get(t->op).n_params;
    for (int k = 0; k < n; k++) {
        const ggl_param p = ggl_op_param(t->op, k);
        variadic |= p.variadic;
        n_num += p.kind == GGL_PARAM_NUMBER;
        if (p.kind != GGL_PARAM_NUMBER && (n_src >= t->n_src || (!p.optional && !t->src[n_src])))
            return false;
        n_src += p.kind != GGL_PARAM_NUMBER;
    }
    return t->n_src == n_src && (variadic ? t->n_num <= GGL_MAX_DIMS : t->n_num == n_num);
}

/* True if the operator t has the shape that the builder infers for it. */
static bool has_shape(ggl_graph *g, const ggl_tensor *t) {
    ggl_tensor y = *t;
    y.n_dims = 0;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        y.ne[d] = d == GGL_BATCH_DIM && ggl_is_batched(t) ? GGL_N : 1;
    return ggl_shape_infer(g, &y) && y.n_dims == t->n_dims && memcmp(y.ne, t->ne, sizeof y.ne) == 0;
}

static bool has_extents(const ggl_tensor *t) {
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        if ((t->ne[d] < 1 || t->ne[d] > INT32_MAX) &&
            !(d == GGL_BATCH_DIM && t->ne[d] == GGL_N && t->n_dims <= GGL_BATCH_DIM))
            return false;
    for (int d = t->n_dims; d < GGL_BATCH_DIM; d++)
        if (t->ne[d] != 1)
            return false;
    return true;
}

/* Reads the elements of a constant. */
static void get_const(loader *l, ggl_tensor *t) {
    const uint64_t size = ggl_get_u64(&l->r);
    const void *from = size <= SIZE_MAX ? ggl_get(&l->r, (size_t)size) : NULL;
    size_t want;
    if (!from || !ggl_value_bytes(t, 1, &want) || want != size)
        damaged(l, "a constant has another size than its shape");
    void *own = ok(l) ? ggl_arena_alloc(&l->g->arena, (size_t)size, 1) : NULL;
    if (own)
        memcpy(own, from, (size_t)size);
    else if (ok(l))
        no_memory(l);
    t->data = own;
    t->size = (size_t)size;
}

/* True if a node of the body is recurrent itself. */
static bool body_keeps_state(const ggl_body *b) {
    for (int i = 0; i < b->n_node; i++)
        if (b->node[i]->keeps_state)
            return true;
    return b->recurrent;
}

/* True if the slot that x names is the batch's: a run reads the slot of each element. */
static bool has_slots(const ggl_tensor *x, int src) {
    const ggl_tensor *slot = src < x->n_src ? x->src[src] : NULL;
    return slot && slot->op == GGL_OP_INPUT && slot->type == GGL_I32 && slot->n_dims == 0 &&
           slot->ne[GGL_BATCH_DIM] == GGL_N;
}

/* True if the states of a body have the batch's slots, and stores that fit them, or none if the body runs in chunks. */
static bool has_states(const ggl_body *b) {
    for (int i = 0; i < b->n_node; i++) {
        const ggl_tensor *x = b->node[i];
        if (x->op == GGL_OP_KEEP && !has_slots(x, KEEP_SLOT))
            return false;
        if (x->op != GGL_OP_STATE)
            continue;
        const ggl_store *s = x->store[0];
        if (!has_slots(x, STATE_SLOT) || (s && b->chunk > 0) ||
            (s && memcmp(s->ne, x->ne, sizeof s->ne) != 0))
            return false;
    }
    return true;
}

static void get_body(loader *l, ggl_tensor *t) {
    ggl_body *b = ggl_arena_alloc(&l->g->arena, 1, sizeof *b);
    if (!b) {
        no_memory(l);
        return;
    }
    b->recurrent = ggl_get_u32(&l->r);
    b->chunk = (int64_t)ggl_get_u64(&l->r);
    b->n_forward = (int)ggl_get_u32(&l->r);
    b->param = get_places(l, &b->n_param, true);
    b->node = get_places(l, &b->n_node, true);
    b->result = get_place(l);
    for (int i = 0; ok(l) && i < b->n_param; i++)
        if (b->param[i]->op != GGL_OP_PARAM)
            damaged(l, "what stands for an argument does not");
    if (ok(l) && (!b->result || b->n_param != t->n_src || b->n_forward < 0 ||
                  b->n_forward > b->n_node || b->chunk < 0 || (b->chunk > 0 && !b->recurrent)))
        damaged(l, "a call's body does not fit it");
    if (ok(l) && !has_states(b))
        damaged(
            l,
            "a state of a body has other slots than the batch's, or a store that does not fit it");
    t->body = b;
    if (ok(l))
        t->keeps_state = body_keeps_state(b);
}

/* Sets the error if t cannot be. */
static void check_tensor(loader *l, const ggl_tensor *t) {
    const bool is_applied = !ggl_is_leaf(t) && t->op != GGL_OP_PARAM && t->op != GGL_OP_CALL;
    if (t->op == GGL_OP_CALL ? !t->body : t->body != NULL)
        damaged(l, "a call has no body, or another node has one");
    else if (t->op == GGL_OP_INPUT && !t->name)
        damaged(l, "an input has no name");
    else if (t->op == GGL_OP_CALL)
        for (int i = 0; i < t->n_src; i++)
            if (!t->src[i])
                damaged(l, "an argument of a call is missing");
    if (ok(l) && is_applied && !has_arguments(t))
        damaged(l, "an operator has other arguments than its signature says");
    if (ok(l) && is_applied && !has_shape(l->g, t))
        damaged(l, "an operator has another shape than its sources give");
}

static void get_tensor(loader *l) {
    ggl_graph *g = l->g;
    ggl_tensor *t = ggl_arena_alloc(&g->arena, 1, sizeof *t);
    if (!t) {
        no_memory(l);
        return;
    }
    t->op = (ggl_op)ggl_get_u32(&l->r);
    t->type = (ggl_type)ggl_get_u32(&l->r);
    t->id = (int)ggl_get_u32(&l->r);
    t->n_dims = (int)ggl_get_u32(&l->r);
    ggl_get_to(&l->r, t->ne, sizeof t->ne);
    t->group = (int)ggl_get_u32(&l->r);
    t->scope = (int)ggl_get_u32(&l->r);
    t->rows = (ggl_rows)ggl_get_u32(&l->r);
    const uint32_t flags = ggl_get_u32(&l->r);
    t->needed = flags & 1;
    t->computed = flags >> 1 & 1;
    if (l->r.failed || (unsigned)t->op >= GGL_OP_COUNT || !ggl_type_get(t->type) || t->id < 0 ||
        t->id >= g->n_ids || l->has_id[t->id] || t->n_dims < 0 || t->n_dims > GGL_MAX_DIMS ||
        (unsigned)t->rows >= GGL_ROWS_COUNT || !has_extents(t)) {
        damaged(l, "a tensor has an impossible operator, type, number or shape");
        return;
    }
    l->has_id[t->id] = true;
    t->name = get_name(l);
    t->origin = get_name(l);
    t->call = get_name(l);
    t->src = get_places(l, &t->n_src, false);
    t->n_num = (int)ggl_get_u32(&l->r);
    if (!ok(l) || t->n_num < 0 ||
        (size_t)t->n_num > (size_t)(l->r.end - l->r.at) / sizeof *t->num) {
        damaged(l, "the numbers of an operator are cut off");
        return;
    }
    t->num = ggl_arena_alloc(&g->arena, (size_t)t->n_num + 1, sizeof *t->num);
    if (!t->num) {
        no_memory(l);
        return;
    }
    ggl_get_to(&l->r, t->num, (size_t)t->n_num * sizeof *t->num);
    for (int k = 0; k < 2; k++)
        t->store[k] = get_store(l);
    if (ggl_get_u32(&l->r))
        get_body(l, t);
    if (t->op == GGL_OP_CONST)
        get_const(l, t);
    if (t->op == GGL_OP_WEIGHT && !ggl_value_bytes(t, 1, &t->size))
        damaged(l, "the rows of a weight are no whole number of blocks");
    if (ok(l))
        check_tensor(l, t);
    if (ok(l) && ggl_graph_bound(g, t)) {
        ggl_facts_init(t);
        l->at[l->n++] = t;
    }
}

static void get_list(loader *l, node_list *to) {
    int n;
    ggl_tensor **list = get_places(l, &n, true);
    if (!ok(l))
        return;
    if (!ggl_grow(&to->at, &to->cap, (size_t)n, sizeof *to->at)) {
        no_memory(l);
        return;
    }
    if (n > 0)
        memcpy(to->at, list, (size_t)n * sizeof *list);
    to->n = (size_t)n;
}

/* Reads all that follows the graph's parameters. */
static void get_graph(loader *l) {
    ggl_graph *g = l->g;
    ggl_get_to(&l->r, g->n_pages, sizeof g->n_pages);
    if (!get_stores(l))
        return;
    g->n_ids = (int)ggl_get_u32(&l->r);
    g->n_scopes = (int)ggl_get_u32(&l->r);
    const uint32_t n = ggl_get_u32(&l->r);
    if (l->r.failed || g->n_ids < 1 || g->n_ids > 2 * GGL_MAX_NODES || n > (uint32_t)g->n_ids) {
        damaged(l, "a number of tensors that no graph has");
        return;
    }
    l->at = ggl_calloc((size_t)n + 1, sizeof *l->at);
    l->has_id = ggl_calloc((size_t)g->n_ids, sizeof *l->has_id);
    if (!l->at || !l->has_id)
        no_memory(l);
    for (uint32_t i = 0; i < n && ok(l); i++)
        get_tensor(l);
    node_list *const list[] = {&g->nodes, &g->inputs, &g->outputs};
    for (int i = 0; i < 3 && ok(l); i++)
        get_list(l, list[i]);
    for (int k = 0; k < GGL_ROWS_COUNT && ok(l); k++) {
        g->pos[k] = get_place(l);
        g->slot[k] = get_place(l);
        g->end[k] = get_place(l);
    }
    g->page = get_place(l);
    if (ok(l) && (l->r.at != l->r.end || g->outputs.n == 0))
        damaged(l, "it has no output, or bytes follow it");
}

ggl_status ggl_graph_of_image(ggl_graph **out, const void *image, size_t size, ggl_error *err) {
    loader l = {.begin = image, .r = {image, (const char *)image + size, false}};
    ggl_graph_params p;
    const void *head = ggl_get(&l.r, sizeof magic);
    ggl_get_to(&l.r, &p, sizeof p);
    *out = NULL;
    if (l.r.failed || memcmp(head, magic, sizeof magic) != 0 || p.size != sizeof p)
        return ggl_fail(err, GGL_FORMAT, "%zu bytes are no graph, or one of another version", size);
    l.g = ggl_graph_new(&p);
    if (!l.g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a graph");
    if (ok(&l))
        get_graph(&l);
    if (l.r.failed)
        damaged(&l, "it is cut off");
    ggl_status st = ggl_graph_error(l.g, err);
    if (st == GGL_OK) {
        l.g->finished = l.g->settled = true;
        *out = l.g;
    } else {
        ggl_graph_free(l.g);
    }
    ggl_free(l.at);
    ggl_free(l.has_id);
    return st;
}

/* --- tables and weights ------------------------------------------------------------------------ */

static void list_by_id(ggl_tensor **at, ggl_tensor *t) {
    if (!t || at[t->id])
        return;
    at[t->id] = t;
    for (int k = 0; k < t->n_src; k++)
        list_by_id(at, t->src[k]);
    for (int k = 0; t->body && k < t->body->n_param; k++)
        list_by_id(at, t->body->param[k]);
    for (int k = 0; t->body && k < t->body->n_node; k++)
        list_by_id(at, t->body->node[k]);
    if (t->body)
        list_by_id(at, t->body->result);
}

ggl_tensor **ggl_graph_by_id(const ggl_graph *g) {
    ggl_tensor **at = ggl_calloc((size_t)g->n_ids, sizeof *at);
    for (size_t i = 0; at && i < g->nodes.n; i++)
        list_by_id(at, g->nodes.at[i]);
    return at;
}

void ggl_weight_image(const ggl_tensor *t, ggl_bytes *out) {
    ggl_put_text(out, t->name);
    ggl_put_u32(out, t->type);
    ggl_put_u32(out, (uint32_t)t->n_dims);
    ggl_put(out, t->ne, sizeof t->ne);
}

bool ggl_weight_of_image(ggl_tensor *t, char *name, size_t size, ggl_reader *r) {
    const ggl_str s = ggl_get_text(r);
    *t = (ggl_tensor){.op = GGL_OP_WEIGHT, .group = -1};
    t->type = (ggl_type)ggl_get_u32(r);
    t->n_dims = (int)ggl_get_u32(r);
    ggl_get_to(r, t->ne, sizeof t->ne);
    if (r->failed || !ggl_type_get(t->type) || t->n_dims < 0 || t->n_dims > GGL_MAX_DIMS ||
        !has_extents(t) || ggl_is_batched(t) || !ggl_value_bytes(t, 1, &t->size))
        return false;
    const size_t n = s.n < size ? s.n : size - 1;
    memcpy(name, s.s ? s.s : "", s.s ? n : 0);
    name[s.s ? n : 0] = '\0';
    t->name = name;
    ggl_facts_init(t);
    return true;
}
