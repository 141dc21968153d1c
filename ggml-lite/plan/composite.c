/* Recognizes composites of the prelude, for backends that have kernels for them. Each is_ function
 * returns whether the call's shapes are those of the composite. */
#include <string.h>

#include "ggl/program.h"

/* True if t has these dimensions; n1 counts only if n_dims is 2. */
static bool has_shape(const ggl_tensor *t, int n_dims, int64_t n0, int64_t n1) {
    return t->n_dims == n_dims && t->ne[0] == n0 && (n_dims < 2 || t->ne[1] == n1);
}

/* Returns the number of states in a body, nested bodies included, and sets *last to the last
 * one. */
static int n_states(const ggl_body *body, const ggl_store **last) {
    int n = 0;
    for (int i = 0; i < body->n_node; i++) {
        const ggl_tensor *t = body->node[i];
        if (t->op == GGL_OP_STATE) {
            *last = t->store[0];
            n++;
        }
        n += t->body ? n_states(t->body, last) : 0;
    }
    return n;
}

const ggl_store *ggl_composite_state(const ggl_tensor *t) {
    const ggl_store *s = NULL;
    return n_states(t->body, &s) == 1 ? s : NULL; /* no known composite has two states */
}

/* Returns the source of the call, or the leaf, from which states in its body (or in nested bodies)
 * read the slots of the batch. NULL: the call has no state. */
static const ggl_tensor *slot_of(const ggl_tensor *call) {
    const ggl_body *body = call->body;
    const ggl_tensor *slot = NULL;
    for (int i = 0; body && i < body->n_node && !slot; i++)
        slot = body->node[i]->op == GGL_OP_STATE ? body->node[i]->src[0] : slot_of(body->node[i]);
    for (int k = 0; slot && k < body->n_param; k++)
        if (body->param[k] == slot)
            return call->src[k];
    return slot;
}

ggl_operand ggl_step_slot(const ggl_segment *s, const ggl_step *step) {
    const ggl_tensor *slot = slot_of(step->node);
    if (!slot)
        return (ggl_operand){.region = -1};
    for (int k = 0; k < step->n_src; k++)
        if (step->node->src[k] == slot)
            return step->src[k];
    return (ggl_operand){.type = GGL_I32,
                         .region = s->loc[slot->id].region,
                         .offset = s->loc[slot->id].offset,
                         .ne = {1, 1, 1, GGL_N},
                         .nb = {4, 4, 4, 4}};
}

static bool any_row(const ggl_tensor *t) {
    return t->src[0]->n_dims > 0;
}

static bool any_shape(const ggl_tensor *t) {
    (void)t;
    return true;
}

/* x [n, m], n a power of two. */
static bool is_hadamard(const ggl_tensor *t) {
    const int64_t n = t->src[0]->ne[0];
    return t->src[0]->n_dims == 2 && (n & (n - 1)) == 0;
}

static bool is_weighted(const ggl_tensor *t) {
    const ggl_tensor *y = t->src[0], *w = t->src[1];
    return y->n_dims == 2 && has_shape(w, 1, y->ne[1], 1);
}

static bool is_recent(const ggl_tensor *t) {
    const ggl_store *s = ggl_composite_state(t);
    int64_t n = t->src[0]->ne[0];
    return s && t->src[0]->n_dims == 1 && t->n_dims == 2 && t->ne[0] == n && s->ne[0] == n &&
           s->ne[1] == t->ne[1] - 1 && s->ne[2] == 1;
}

/* x [n], w [k, n] -> [n]: convolves the history of each element with its own k weights. */
static bool is_conv(const ggl_tensor *t) {
    const ggl_store *s = ggl_composite_state(t);
    int64_t n = t->src[0]->ne[0], k = t->src[1]->ne[0];
    return s && has_shape(t->src[0], 1, n, 1) && has_shape(t->src[1], 2, k, n) &&
           has_shape(t, 1, n, 1) && s->ne[0] == n && s->ne[1] == k - 1 && s->ne[2] == 1;
}

/* True if t has one state, of shape [n, rows, h], and the result [rows, h]. */
static bool is_state(const ggl_tensor *t, int64_t n, int64_t rows, int64_t h) {
    const ggl_store *s = ggl_composite_state(t);
    return s && s->ne[0] == n && s->ne[1] == rows && s->ne[2] == h && has_shape(t, 2, rows, h);
}

/* True if t is a decay for h heads of n elements: a number for each head [h], or for each element
 * of each head [n, h]. */
static bool is_decay(const ggl_tensor *t, int64_t n, int64_t h) {
    return has_shape(t, 1, h, 1) || has_shape(t, 2, n, h);
}

/* True if a and b have one row for each group of heads: [n, groups], or [n] if there is one group. */
static bool are_of_groups(const ggl_tensor *a, const ggl_tensor *b, int64_t n, int64_t h) {
    return a->n_dims <= 2 && b->n_dims <= 2 && a->ne[0] == n && b->ne[0] == n &&
           a->ne[1] == b->ne[1] && h % a->ne[1] == 0;
}

/* sources: q, k, v, g, beta */
static bool is_delta(const ggl_tensor *t) {
    const ggl_tensor *const *x = (const ggl_tensor *const *)t->src;
    int64_t dk = x[1]->ne[0], dv = x[2]->ne[0], h = x[2]->ne[1];
    return are_of_groups(x[0], x[1], dk, h) && has_shape(x[2], 2, dv, h) && is_decay(x[3], dk, h) &&
           has_shape(x[4], 1, h, 1) && is_state(t, dk, dv, h);
}

static bool is_scan(const ggl_tensor *t) {
    const ggl_tensor *const *x = (const ggl_tensor *const *)t->src;
    int64_t d = x[0]->ne[0], h = x[0]->ne[1], n = x[3]->ne[0];
    return has_shape(x[0], 2, d, h) && has_shape(x[1], 1, h, 1) &&
           (is_decay(x[2], n, h) || has_shape(x[2], 2, 1, h)) && are_of_groups(x[3], x[4], n, h) &&
           is_state(t, n, d, h);
}

/* sources: q, k, v, w */
static bool is_linear_attention(const ggl_tensor *t) {
    const ggl_tensor *const *x = (const ggl_tensor *const *)t->src;
    int64_t dk = x[0]->ne[0], dv = x[2]->ne[0], h = x[0]->ne[1];
    return has_shape(x[0], 2, dk, h) && has_shape(x[1], 2, dk, h) && has_shape(x[2], 2, dv, h) &&
           has_shape(x[3], 2, dk, h) && is_state(t, dk, dv, h);
}

/* All sources have one shape: a head's keys are as long as its values. */
static bool is_wkv(const ggl_tensor *t) {
    int64_t d = t->src[0]->ne[0], h = t->src[0]->ne[1];
    bool same = true;
    for (int i = 0; i < t->n_src; i++)
        same = same && has_shape(t->src[i], 2, d, h);
    return same && is_state(t, d, d, h);
}

static const struct {
    const char *name;
    int n_src, n_num;
    bool recurrent;
    bool (*fits)(const ggl_tensor *t);
} composite[GGL_COMPOSITE_COUNT] = {
#define COMPOSITE(ID, name, n_src, n_num, recurrent, fits)                                         \
    [GGL_COMPOSITE_##ID] = {name, n_src, n_num, recurrent, fits},
#include "ggl/composites.def"
#undef COMPOSITE
};

/* True if a kernel of composite k reads a source of the type: f32, but for sums of squares, for which weights are read as they are. */
static bool takes_type(int k, ggl_type type) {
    return type == GGL_F32 || (k == GGL_COMPOSITE_SUM_SQUARES && type != GGL_I32);
}

/* True if t has the sources, their types, numbers and shapes of composite k. */
static bool has_form(const ggl_tensor *t, int k) {
    bool fits = t->n_src == composite[k].n_src;
    for (int i = 0; i < t->n_src && fits; i++)
        fits = t->src[i] && takes_type(k, t->src[i]->type);
    return fits && t->n_num >= composite[k].n_num && t->body->recurrent == composite[k].recurrent &&
           composite[k].fits(t);
}

ggl_composite ggl_composite_of(const ggl_tensor *t) {
    for (int k = GGL_COMPOSITE_NONE + 1; t->call && k < GGL_COMPOSITE_COUNT; k++)
        if (strcmp(composite[k].name, t->call) == 0)
            return has_form(t, k) ? (ggl_composite)k : GGL_COMPOSITE_NONE;
    return GGL_COMPOSITE_NONE;
}
