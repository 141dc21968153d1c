/* Flattens the nodes of a segment to steps, without views and calls. */
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/op_args.h"
#include "ggl/internal/turns.h"
#include "program_impl.h"

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

/* Gives t the elements of `of`, without a step. */
static void alias(builder *b, const ggl_tensor *t, const ggl_tensor *of) {
    b->value[t->id] = *ggl_plan_value_of(b, of);
}

/* Makes t a root and pushes a step that copies `of`, whose elements are at `from`, into it. */
static void push_copy(builder *b, const ggl_tensor *t, const ggl_tensor *of, value from) {
    if (b->value[t->id].root != t)
        ggl_plan_own_root(b, t);
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
    const value *x = ggl_plan_value_of(b, t->src[0]);
    value y = *x;
    if (t->op == GGL_OP_SPLIT) {
        int dim = (int)t->num[SPLIT_DIM];
        y.offset += (size_t)t->num[SPLIT_FIRST] /
                    (size_t)(dim == 0 ? ggl_type_get(x->type)->block : 1) * x->nb[dim];
    } else if (!reshape_strides(t->src[0], x, t, y.nb)) {
        return false;
    }
    *v = y;
    return true;
}

static void begin_loop(builder *b, const ggl_tensor *t) {
    push(b, GGL_STEP_LOOP, t, NULL);
    b->loop = t;
}

static void end_loop(builder *b, const ggl_tensor *t) {
    b->loop = NULL;
    push(b, GGL_STEP_END, t, NULL);
}

/* Makes the memory of a state that ends with the run: one array for each slot, and, for nodes that run forward, those of ggl_turns_n_arrays.
 * There the state is one of these, and else a copy. Sets b->no_memory if out of memory. */
static void push_state(builder *b, const ggl_tensor *t) {
    const int64_t n_more = b->chunk > 0 ? ggl_turns_n_arrays(b->chunk, b->s->n_max) : 0;
    ggl_tensor *room = ggl_plan_new_tensor(b);
    item *it = push(b, GGL_STEP_NODE, t, NULL);
    if (!room || !it) {
        b->no_memory = true;
        return;
    }
    memcpy(room->ne, t->ne, sizeof room->ne);
    room->ne[GGL_BATCH_DIM] = ggl_graph_get_params(b->s->graph)->n_slots + n_more;
    ggl_plan_own_room(b, room);
    if (b->chunk > 0)
        alias(b, t, room);
    it->room = room;
}

/* Returns the memory of a state that ends with the run; NULL: it has a store. */
static const ggl_tensor *room_of(const builder *b, const ggl_tensor *state) {
    size_t i = b->n;
    while (i > 0 && (b->at[i - 1].node != state || b->at[i - 1].copy_of))
        i--;
    return i > 0 ? b->at[i - 1].room : NULL;
}

/* Replaces the call t by its body; a recurrent body runs in a loop, once for each element of the
 * batch. */
static void flatten_call(builder *b, const ggl_tensor *t) {
    const ggl_body *body = t->body;
    for (int i = 0; i < body->n_param; i++)
        alias(b, body->param[i], t->src[i]);
    if (!body->recurrent) {
        ggl_plan_flatten(b, body->node, body->n_node);
        if (b->no_memory) /* the result may have no value yet */
            return;
        const ggl_type type = ggl_plan_value_of(b, body->result)->type;
        if (ggl_plan_is_private(b, t) && (type == b->p->value_type || type == GGL_I32)) {
            alias(b, t, body->result);
        } else {
            push_copy(b, t, body->result, *ggl_plan_value_of(b, body->result));
        }
        return;
    }
    ggl_plan_own_root(b, t);
    if (body->chunk > 0) {
        begin_loop(b, t);
        b->chunk = body->chunk;
        ggl_plan_flatten(b, body->node, body->n_forward);
        b->chunk = 0;
        end_loop(b, t);
    }
    const int first = body->chunk > 0 ? body->n_forward : 0;
    begin_loop(b, t);
    ggl_plan_flatten(b, body->node + first, body->n_node - first);
    if (!b->no_memory)
        push_copy(b, t, body->result, *ggl_plan_value_of(b, body->result));
    end_loop(b, t);
}

static void push_node(builder *b, const ggl_tensor *t) {
    if (t->op == GGL_OP_STATE && b->loop && b->loop->body->chunk > 0) {
        push_state(b, t);
        return;
    }
    item *it = push(b, GGL_STEP_NODE, t, NULL);
    if (it && t->op == GGL_OP_KEEP)
        it->room = room_of(b, t->src[KEEP_STATE]);
}

void ggl_plan_flatten(builder *b, ggl_tensor *const *node, int n) {
    for (int i = 0; i < n && !b->no_memory; i++) {
        const ggl_tensor *t = node[i];
        if (!t->computed && !(t->needed && t->view_of && !ggl_is_leaf(t)))
            continue;
        if (t->op == GGL_OP_CALL && (!t->call || b->p->refuses(b->p->backend, t))) {
            flatten_call(b, t);
        } else if (resolve_view(b, t)) {
            if (!ggl_plan_is_private(b, t))
                copy_view(b, t);
        } else {
            ggl_plan_own_root(b, t);
            push_node(b, t);
        }
    }
}
