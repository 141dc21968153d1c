/* Turns a segment into a flat list of steps, in three passes over its nodes:
 *
 *   flatten  Replaces calls that the backend does not know by their bodies, and puts a loop around
 *            recurrent bodies. Makes every tensor a view of a root: a tensor with memory of its
 *            own, which is either private (in the arena) or placed by the segment. Views cost no
 *            step.
 *   order    Sorts the steps into waves: steps of one wave do not depend on each other.
 *   place    Gives private roots arena offsets according to their lifetimes, and each step its
 *            operands.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/program.h"
#include "graph/graph_impl.h"
#include "offsets.h"

/* Where a tensor's elements are: from byte `offset` of its root on, with strides nb[]. */
typedef struct value {
    const ggl_tensor *root; /* NULL: not resolved yet */
    size_t offset, nb[GGL_MAX_DIMS];
    ggl_type type;
} value;

/* The memory of a tensor that owns its elements, and its lifetime. */
typedef struct root {
    /* placed: the segment has placed it; else it is private and gets an offset in the arena.
     * in_loop: it is written inside a loop and has memory for one element of the batch. */
    bool placed, in_loop;
    bool taken_over; /* the last step that reads it writes its own result over it */
    int last; /* index of the last step that reads or writes it; its memory is free after that */
    int wave; /* the wave that writes it; 0: no step does */
    size_t size;
    ggl_loc loc;
} root;

/* A step without operands. */
typedef struct item {
    ggl_step_kind kind;
    const ggl_tensor *node;    /* LOOP, END: the call. NODE: the node, or the copy's destination */
    const ggl_tensor *copy_of; /* the tensor that this step copies; NULL: it computes `node` */
    value from, to;            /* of a copy: source and destination */
    bool in_loop;
    int end, wave; /* end: of a LOOP the index of its END, of an END that of its LOOP */
} item;

/* A step moves forward past at most this many others, so that values do not wait long in memory. */
enum { WINDOW = 32 };

typedef struct builder {
    const ggl_segment *s;
    const ggl_program_params *p;
    item *at;
    size_t n, cap;
    value *value;               /* by tensor id */
    root *root;                 /* by tensor id */
    const ggl_tensor *loop;     /* the recurrent call that is being flattened; NULL: none */
    const ggl_tensor *too_wide; /* the first node with more than GGL_MAX_SRC sources */
    bool no_memory, too_large;
} builder;

/* --- flatten ---------------------------------------------------------------------------------- */

/* Appends a step and returns it, valid until the next push; NULL: out of memory (b->no_memory). */
static item *push(builder *b, ggl_step_kind kind, const ggl_tensor *node,
                  const ggl_tensor *copy_of) {
    if (kind == GGL_STEP_NODE && !copy_of && ggl_n_reads(node) > GGL_MAX_SRC && !b->too_wide)
        b->too_wide = node;
    if (!ggl_grow(&b->at, &b->cap, b->n + 1, sizeof *b->at)) {
        b->no_memory = true;
        return NULL;
    }
    b->at[b->n] =
        (item){.kind = kind, .node = node, .copy_of = copy_of, .in_loop = b->loop != NULL};
    return &b->at[b->n++];
}

/* True if the segment assigns t no memory: only steps of this program use it. */
static bool is_private(const builder *b, const ggl_tensor *t) {
    return b->s->loc[t->id].region < 0;
}

/* Sets nb[] to the strides of a tensor without gaps. */
static void dense(size_t *nb, ggl_type type, const int64_t *ne) {
    nb[0] = ggl_type_get(type)->size;
    nb[1] = ggl_row_size(type, ne[0]);
    nb[2] = nb[1] * (size_t)ne[1];
    nb[3] = nb[2] * (size_t)ne[2];
}

/* Makes t a root: its elements get memory of their own, private or where the segment has placed
 * them. Private floats are stored as params.value_type. */
static void own_root(builder *b, const ggl_tensor *t) {
    value *v = &b->value[t->id];
    root *r = &b->root[t->id];
    *r = (root){.placed = !is_private(b, t),
                .in_loop = b->loop && !ggl_is_leaf(t),
                .loc = b->s->loc[t->id]};
    bool computed = !ggl_is_leaf(t), number = t->type != GGL_I32;
    v->root = t;
    v->offset = 0;
    v->type = computed && number && !r->placed ? b->p->value_type : t->type;
    dense(v->nb, v->type, t->ne);
    if (!ggl_extents_bytes(v->type, t->ne, r->in_loop ? 1 : b->s->n_max, &r->size))
        b->too_large = true;
}

/* Returns the value of t. Leaves and tensors of other segments are made roots on first use. */
static const value *value_of(builder *b, const ggl_tensor *t) {
    if (!b->value[t->id].root) {
        const ggl_tensor *loop = b->loop;
        assert(ggl_is_leaf(t) || !is_private(b, t));
        b->loop = NULL;
        own_root(b, t);
        b->loop = loop;
    }
    return &b->value[t->id];
}

/* Gives t the elements of `of`, without a step. */
static void alias(builder *b, const ggl_tensor *t, const ggl_tensor *of) {
    b->value[t->id] = *value_of(b, of);
}

/* Makes t a root and pushes a step that copies `of`, whose elements are at `from`, into it. */
static void push_copy(builder *b, const ggl_tensor *t, const ggl_tensor *of, value from) {
    if (b->value[t->id].root != t)
        own_root(b, t);
    item *it = push(b, GGL_STEP_NODE, t, of);
    if (it) {
        it->from = from;
        it->to = b->value[t->id];
    }
}

/* Copies a view that other segments read to where the segment places it. Steps of this program
 * still read the view itself: private values may be wider (f64) than the copy, which is rounded,
 * so two views of one value would otherwise differ. */
static void copy_view(builder *b, const ggl_tensor *t) {
    const value view = b->value[t->id];
    push_copy(b, t, t, view);
    b->value[t->id] = view;
}

/* Returns where the item writes its result. */
static const value *result_of(builder *b, const item *it) {
    return it->copy_of ? &it->to : value_of(b, it->node);
}

/* Sets nb[] to strides with which y, a reshape of x, reads x's elements in place. Returns false if
 * there are no such strides, so that y has to be a copy.
 *
 * Matches dimensions in groups, innermost first: each group takes as few dimensions of x and of y
 * as have the same number of elements. x must be dense within a group of its own dimensions.
 * Example: [6, 4] to [3, 2, 4] has the groups 6 = 3 * 2 and 4 = 4. Lengths along dimension 0 are
 * counted in blocks. */
static bool reshape_strides(const ggl_tensor *x, const value *v, const ggl_tensor *y, size_t *nb) {
    const ggl_type_info *type = ggl_type_get(v->type);
    int n = ggl_is_batched(x) ? 3 : 4;
    int64_t from[GGL_MAX_DIMS], to[GGL_MAX_DIMS];
    size_t step[GGL_MAX_DIMS];
    int n_from = 0, i = 0;
    /* from[], step[]: lengths and strides of x, without dimensions of length 1 */
    for (int d = 0; d < n; d++)
        if (x->ne[d] != 1 || (d == 0 && type->block > 1)) {
            from[n_from] = d == 0 ? x->ne[0] / type->block : x->ne[d];
            step[n_from++] = v->nb[d];
        }
    for (int d = 0; d < n; d++)
        to[d] = d == 0 ? y->ne[0] / type->block : y->ne[d];
    size_t next = type->size;
    for (int d = 0; d < n;) {
        if (to[d] == 1) {
            nb[d++] = next;
            continue;
        }
        if (i == n_from)
            return false;
        /* one group: x's dimensions from i on against y's dimensions d .. last */
        int64_t have = from[i], want = to[d];
        nb[d] = step[i];
        int last = d;
        while (have != want) {
            if (have < want) {
                if (i + 1 == n_from || step[i + 1] != step[i] * (size_t)from[i])
                    return false;
                have *= from[++i];
            } else {
                if (last + 1 == n)
                    return false;
                want *= to[++last];
            }
        }
        for (int k = d + 1; k <= last; k++)
            nb[k] = nb[k - 1] * (size_t)to[k - 1];
        next = nb[last] * (size_t)to[last];
        i++;
        d = last + 1;
    }
    if (ggl_is_batched(x))
        nb[3] = v->nb[3];
    return nb[0] == type->size;
}

/* If t is a reshape or a split that needs no copy, makes it a view of its source's root and returns
 * true. */
static bool resolve_view(builder *b, const ggl_tensor *t) {
    value *v = &b->value[t->id];
    if (t->op != GGL_OP_RESHAPE && t->op != GGL_OP_SPLIT)
        return false;
    const value *x = value_of(b, t->src[0]);
    value y = *x;
    if (t->op == GGL_OP_SPLIT) {
        int dim = (int)t->num[0];
        y.offset +=
            (size_t)t->num[1] / (size_t)(dim == 0 ? ggl_type_get(x->type)->block : 1) * x->nb[dim];
    } else if (!reshape_strides(t->src[0], x, t, y.nb)) {
        return false;
    }
    *v = y;
    return true;
}

static void flatten(builder *b, ggl_tensor *const *node, int n);

/* Replaces the call t by its body; a recurrent body runs in a loop, once for each element of the
 * batch. */
static void flatten_call(builder *b, const ggl_tensor *t) {
    const ggl_body *body = t->body;
    for (int i = 0; i < body->n_param; i++)
        alias(b, body->param[i], t->src[i]);
    if (!body->recurrent) {
        flatten(b, body->node, body->n_node);
        if (b->no_memory) /* the result may have no value yet */
            return;
        const ggl_type type = value_of(b, body->result)->type;
        if (is_private(b, t) && (type == b->p->value_type || type == GGL_I32)) {
            alias(b, t, body->result);
        } else {
            push_copy(b, t, body->result, *value_of(b, body->result));
        }
        return;
    }
    own_root(b, t);
    push(b, GGL_STEP_LOOP, t, NULL);
    b->loop = t;
    flatten(b, body->node, body->n_node);
    if (!b->no_memory)
        push_copy(b, t, body->result, *value_of(b, body->result));
    b->loop = NULL;
    push(b, GGL_STEP_END, t, NULL);
}

/* Pushes the steps of n nodes, and sets their values. */
static void flatten(builder *b, ggl_tensor *const *node, int n) {
    for (int i = 0; i < n && !b->no_memory; i++) {
        const ggl_tensor *t = node[i];
        if (!t->computed && !(t->needed && t->view_of && !ggl_is_leaf(t)))
            continue;
        if (t->op == GGL_OP_CALL && (!t->call || b->p->refuses(b->p->backend, t))) {
            flatten_call(b, t);
        } else if (resolve_view(b, t)) {
            if (!is_private(b, t))
                copy_view(b, t);
        } else {
            own_root(b, t);
            push(b, GGL_STEP_NODE, t, NULL);
        }
    }
}

/* --- what a step reads ------------------------------------------------------------------------ */

/* Sets src[] to the tensors that the step reads and returns how many, at most GGL_MAX_SRC. NULL
 * stands for an absent source and for one without a value: a cache, and the state that KEEP
 * writes. */
static int sources(const item *it, const ggl_tensor **src) {
    const ggl_tensor *t = it->node;
    if (it->kind != GGL_STEP_NODE)
        return 0;
    if (it->copy_of) {
        src[0] = it->copy_of;
        return 1;
    }
    int n = ggl_n_reads(t);
    for (int k = 0; k < n; k++) {
        const ggl_tensor *x = ggl_read(t, k);
        bool no_value = x && (x->op == GGL_OP_CACHE || (t->op == GGL_OP_KEEP && k == 0));
        src[k] = no_value ? NULL : x;
    }
    return n;
}

/* False for steps that write no tensor: loops, their ends, CACHE and KEEP. */
static bool has_value(const item *it) {
    return it->kind == GGL_STEP_NODE && it->node->op != GGL_OP_CACHE && it->node->op != GGL_OP_KEEP;
}

/* --- order ------------------------------------------------------------------------------------ */

/* True if the step reads or writes stores. Such steps keep their order among themselves. */
static bool uses_stores(const item *it) {
    const ggl_tensor *t = it->node;
    return !it->copy_of && (t->op == GGL_OP_CACHE || t->op == GGL_OP_ATTEND ||
                            t->op == GGL_OP_STATE || t->op == GGL_OP_KEEP || t->keeps_state);
}

/* Returns the first wave, `first` or later, that comes after all waves that write the item's
 * sources. */
static int wave_after_sources(builder *b, const item *it, int first) {
    const ggl_tensor *src[GGL_MAX_SRC];
    int wave = first;
    for (int n = sources(it, src), k = 0; k < n; k++)
        if (src[k]) {
            const value *v = it->copy_of ? &it->from : value_of(b, src[k]);
            int written = b->root[v->root->id].wave;
            wave = written >= wave ? written + 1 : wave;
        }
    return wave;
}

/* Assigns a wave to each item and returns the highest. A loop is one wave of its own; no step
 * moves from one side of it to the other. */
static int set_waves(builder *b) {
    /* top: highest wave so far; base: first wave after the last loop; stores: last wave that uses
     * stores */
    int top = 0, base = 1, stores = 0;
    for (size_t i = 0; i < b->n; i++) {
        item *it = &b->at[i];
        if (it->kind == GGL_STEP_LOOP) {
            it->wave = top + 1;
        } else if (it->in_loop || it->kind == GGL_STEP_END) {
            it->wave = top;
        } else {
            int first =
                i >= WINDOW && b->at[i - WINDOW].wave > base ? b->at[i - WINDOW].wave : base;
            it->wave = wave_after_sources(b, it, first);
            if (uses_stores(it)) {
                it->wave = it->wave > stores ? it->wave : stores + 1;
                stores = it->wave;
            }
        }
        top = it->wave > top ? it->wave : top;
        base = it->kind == GGL_STEP_END ? top + 1 : base;
        b->root[it->node->id].wave = it->wave;
    }
    return top;
}

/* Sorts the items by wave (stable) and links each LOOP with its END. Returns false if out of
 * memory. */
static bool order_in_waves(builder *b) {
    int top = set_waves(b), loop = 0;
    item *sorted = ggl_calloc(b->n + 1, sizeof *sorted);
    size_t *at = ggl_calloc((size_t)top + 2, sizeof *at); /* by wave: where its next item goes */
    if (sorted && at) {
        for (size_t i = 0; i < b->n; i++)
            at[b->at[i].wave + 1]++;
        for (int w = 1; w <= top + 1; w++)
            at[w] += at[w - 1];
        for (size_t i = 0; i < b->n; i++)
            sorted[at[b->at[i].wave]++] = b->at[i];
        memcpy(b->at, sorted, b->n * sizeof *sorted);
        for (int i = 0; i < (int)b->n; i++) {
            if (b->at[i].kind == GGL_STEP_LOOP)
                loop = i;
            if (b->at[i].kind == GGL_STEP_END) {
                b->at[i].end = loop;
                b->at[loop].end = i;
            }
        }
    }
    bool ok = sorted && at;
    ggl_free(sorted);
    ggl_free(at);
    return ok;
}

/* --- place ------------------------------------------------------------------------------------ */

/* Extends the lifetime of v's root to step i, or, if step i is in a loop and the root is outside,
 * to the loop's end. */
static void read_at(builder *b, const value *v, int i) {
    root *r = &b->root[v->root->id];
    int last = i;
    if (b->at[i].in_loop && !r->in_loop) /* the next turn reads it again */
        while (b->at[last].kind != GGL_STEP_END)
            last++;
    if (last > r->last)
        r->last = last;
}

/* Finds the last step that uses each root, and sets root.last to it. */
static void find_lifetimes(builder *b) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (size_t i = 0; i < b->n; i++) {
        const item *it = &b->at[i];
        for (int n = sources(it, src), k = 0; k < n; k++)
            if (src[k])
                read_at(b, it->copy_of ? &it->from : value_of(b, src[k]), (int)i);
        if (has_value(it))
            read_at(b, result_of(b, it), (int)i);
    }
}

/* Returns the index of the last step in the wave of step i; i itself inside a loop. */
static int last_of_wave(const builder *b, int i) {
    while (!b->at[i].in_loop && i + 1 < (int)b->n && b->at[i + 1].wave == b->at[i].wave)
        i++;
    return i;
}

/* True if the item reads elements of the root `of`. */
static bool reads_root(builder *b, const item *it, const ggl_tensor *of) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (int n = sources(it, src), k = 0; k < n; k++)
        if (src[k] && (it->copy_of ? &it->from : value_of(b, src[k]))->root == of)
            return true;
    return false;
}

/* Returns the root of a source over which step i may write its result, or NULL. The backend must
 * allow it (params.in_place). The source must be the whole root and have the result's type, shape
 * and strides. No later step, and none of the same wave, may read it. */
static root *place_of_source(builder *b, int i) {
    const item *it = &b->at[i];
    const ggl_tensor *src[GGL_MAX_SRC], *t = it->node;
    if (it->copy_of || it->in_loop || !b->p->in_place || !b->p->in_place(t))
        return NULL;
    const value *to = &b->value[t->id];
    const int n = sources(it, src);
    for (int k = 0; k < n; k++) {
        const value *v = src[k] ? value_of(b, src[k]) : NULL;
        root *r = v ? &b->root[v->root->id] : NULL;
        bool fits = r && !r->placed && !r->in_loop && r->last == i &&
                    r->size == b->root[t->id].size && v->type == to->type &&
                    ggl_is_batched(src[k]) == ggl_is_batched(t);
        for (int e = 0; e < n && fits; e++)
            if (src[e] && value_of(b, src[e])->root == v->root)
                fits = value_of(b, src[e])->offset == 0 &&
                       memcmp(value_of(b, src[e])->nb, to->nb, sizeof to->nb) == 0 &&
                       memcmp(src[e]->ne, t->ne, sizeof t->ne) == 0;
        for (int j = i - 1; j >= 0 && fits && b->at[j].wave == it->wave; j--)
            fits = !reads_root(b, &b->at[j], v->root);
        if (fits)
            return r;
    }
    return NULL;
}

/* Gives each private root an offset in the arena. Walks the steps in order: takes memory where a
 * root is written, and returns it after the last wave that uses the root. */
static ggl_status place_roots(builder *b, size_t *arena_size, ggl_error *err) {
    offsets free_list = {0};
    ggl_status s = GGL_OK;
    /* dies[i]: the roots whose memory is free after step i, linked through next[] (by tensor id) */
    const ggl_tensor **dies = ggl_calloc(b->n + 1, sizeof *dies);
    const ggl_tensor **next = ggl_calloc((size_t)ggl_graph_n_ids(b->s->graph) + 1, sizeof *next);
    bool *done = ggl_calloc((size_t)ggl_graph_n_ids(b->s->graph) + 1, sizeof *done);
    if (!dies || !next || !done)
        s = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    for (size_t i = 0; i < b->n && s == GGL_OK; i++) {
        const ggl_tensor *t = b->at[i].node;
        bool writes = has_value(&b->at[i]) || b->at[i].kind == GGL_STEP_LOOP;
        root *r = &b->root[t->id];
        if (writes && !r->placed && !done[t->id] && b->value[t->id].root == t) {
            done[t->id] = true;
            root *over = b->at[i].kind == GGL_STEP_NODE ? place_of_source(b, (int)i) : NULL;
            r->loc.region = GGL_REGION_ARENA;
            if (over) {
                r->loc = over->loc;
                over->taken_over = true;
            } else if (!ggl_offsets_take(&free_list, r->size, &r->loc.offset)) {
                s = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
            }
            int last = last_of_wave(b, r->last); /* steps of one wave may run at the same time */
            next[t->id] = dies[last];
            dies[last] = t;
        }
        for (const ggl_tensor *d = s == GGL_OK ? dies[i] : NULL; d; d = next[d->id])
            if (!b->root[d->id].taken_over &&
                !ggl_offsets_give(&free_list, b->root[d->id].loc.offset, b->root[d->id].size))
                s = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    }
    *arena_size = free_list.end;
    ggl_offsets_fini(&free_list);
    ggl_free(dies);
    ggl_free(next);
    ggl_free(done);
    return s;
}

/* Returns the operand for t, whose elements are at v, in a step inside or outside a loop. */
static ggl_operand operand(builder *b, const ggl_tensor *t, const value *v, bool in_loop) {
    const root *r = &b->root[v->root->id];
    ggl_operand o = {.type = v->type, .region = r->loc.region, .offset = r->loc.offset + v->offset};
    memcpy(o.ne, t->ne, sizeof o.ne);
    memcpy(o.nb, v->nb, sizeof o.nb);
    if (in_loop && ggl_is_batched(t)) {
        o.ne[GGL_BATCH_DIM] = 1;
        o.loop = r->in_loop ? 0 : v->nb[GGL_BATCH_DIM];
    }
    return o;
}

/* Returns the operand for the weight of a product: the repacked copy, if the weight has one and the
 * product reads all of it, else the weight itself. */
static ggl_operand weight_operand(builder *b, const ggl_tensor *t, const value *v, bool in_loop) {
    ggl_operand o = operand(b, t, v, in_loop);
    const ggl_tensor *w = v->root;
    size_t nb[GGL_MAX_DIMS];
    if (!b->s->repacked || w->op != GGL_OP_WEIGHT || b->s->repacked[w->id].region < 0)
        return o;
    dense(nb, w->type, w->ne);
    if (v->offset != 0 || memcmp(t->ne, w->ne, sizeof w->ne) != 0 ||
        memcmp(v->nb, nb, sizeof nb) != 0)
        return o;
    o.region = b->s->repacked[w->id].region;
    o.offset = b->s->repacked[w->id].offset;
    o.repacked = true;
    return o;
}

/* The node of all steps that copy. */
static const ggl_tensor copy_node = {.op = GGL_OP_RESHAPE, .name = "copy", .ne = {1, 1, 1, 1}};

/* Fills in *step: the item with its operands, all addresses resolved. */
static void make_step(builder *b, const item *it, ggl_step *step) {
    const ggl_tensor *src[GGL_MAX_SRC];
    step->kind = it->kind;
    step->node = it->copy_of ? &copy_node : it->node;
    step->end = it->end;
    step->wave = it->in_loop || it->kind != GGL_STEP_NODE ? 0 : it->wave;
    step->n_src = sources(it, src);
    const ggl_operand absent = {.region = -1};
    for (int k = 0; k < step->n_src; k++) {
        const value *v = !src[k] ? NULL : it->copy_of ? &it->from : value_of(b, src[k]);
        bool weight = k == 1 && it->node->op == GGL_OP_LINEAR && !it->copy_of;
        step->src[k] = v ? (weight ? weight_operand : operand)(b, src[k], v, it->in_loop) : absent;
        assert(!v || step->src[k].region >= 0);
    }
    step->dst = has_value(it) ? operand(b, it->node, result_of(b, it), it->in_loop) : absent;
}

/* --- the program ------------------------------------------------------------------------------ */

/* GGL_LIMIT if a node has more sources than a step has room for. */
static ggl_status check_items(const builder *b, ggl_error *err) {
    if (b->too_wide)
        return ggl_fail(err, GGL_LIMIT, "%s has %d sources; at most %d are allowed",
                        b->too_wide->call ? b->too_wide->call : ggl_op_get(b->too_wide->op).name,
                        ggl_n_reads(b->too_wide), GGL_MAX_SRC);
    return GGL_OK;
}

/* Runs the passes and fills in *p; on failure p->step may be set, and the caller frees it. */
static ggl_status build(builder *b, ggl_program *p, ggl_error *err) {
    flatten(b, b->s->node, b->s->n_node);
    ggl_status s = check_items(b, err);
    if (s != GGL_OK)
        return s;
    if (b->no_memory || !order_in_waves(b))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    find_lifetimes(b);
    s = b->too_large ? ggl_fail(err, GGL_LIMIT, "a value of the plan does not fit into memory")
                     : place_roots(b, &p->arena_size, err);
    if (s != GGL_OK)
        return s;
    p->step = ggl_calloc(b->n, sizeof *p->step);
    if (!p->step)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    for (size_t i = 0; i < b->n; i++)
        make_step(b, &b->at[i], &p->step[i]);
    p->n_step = (int)b->n;
    p->n_max = b->s->n_max;
    return GGL_OK;
}

ggl_status ggl_program_build(ggl_program *p, const ggl_segment *s, const ggl_program_params *params,
                             ggl_error *err) {
    *p = (ggl_program){0};
    size_t n = (size_t)ggl_graph_n_ids(s->graph) + 1;
    builder b = {.s = s, .p = params};
    b.value = ggl_calloc(n, sizeof *b.value);
    b.root = ggl_calloc(n, sizeof *b.root);
    ggl_status status = b.value && b.root ? build(&b, p, err)
                                          : ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    ggl_free(b.value);
    ggl_free(b.root);
    ggl_free(b.at);
    if (status != GGL_OK)
        ggl_program_fini(p);
    return status;
}

void ggl_program_fini(ggl_program *p) {
    ggl_free(p->step);
    *p = (ggl_program){0};
}
