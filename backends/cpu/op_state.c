/* Operators that keep values from token to token unchanged: state and keep, which run in loops;
 * recent and short_conv, which keep the last rows. A unit of the latter is a part of the columns,
 * and takes it through all tokens of the batch in order. */
#include <string.h>

#include "cpu.h"

/* Returns the slot's array in the step's store. */
static float *state_of(const cpu_task *t, int64_t slot) {
    return (float *)cpu_slot(t, &t->step->state, slot);
}

static ggl_status store_compile(cpu_compiler *c, cpu_step *s, const ggl_store *store,
                                ggl_error *err) {
    if (!store || store->type != GGL_F32)
        return ggl_fail(err, GGL_UNSUPPORTED, "a state must be f32");
    s->state = ggl_cpu_compiler_store(c, store);
    return GGL_OK;
}

/* The state of `state` or `keep`, which has a store, or ends with the run and is a row of the operand `room`. */
static ggl_status either_compile(cpu_compiler *c, cpu_step *s, const ggl_store *store,
                                 const ggl_operand *room, ggl_error *err) {
    s->state.store = NULL;
    return !store && room->region >= 0 ? GGL_OK : store_compile(c, s, store, err);
}

static ggl_status state_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    return either_compile(c, s, s->node->store[0], &s->src[1], err);
}

static ggl_status keep_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    return either_compile(c, s, s->node->src[0]->store[0], &s->src[KEEP_STATE], err);
}

/* Returns the array of the step's state: of the slot, or this row of `room`. */
static float *array_of(const cpu_task *t, const cpu_view *slot, const cpu_view *room, int64_t row) {
    return t->step->state.store ? state_of(t, *(const int32_t *)slot->p)
                                : (float *)(room->p + (size_t)row * room->nb[GGL_BATCH_DIM]);
}

/* state and keep are a single unit. */
static void one_unit(cpu_task *t) {
    t->n_units = 1;
    t->cost = 0;
}

/* Copies bytes, unless they are there already. */
static void copy(void *to, const void *from, size_t size) {
    if (to != from)
        memcpy(to, from, size);
}

/* Copies the slot's state to dst. */
static void state_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)first, (void)last, (void)thread;
    const size_t size = (size_t)ggl_extents(t->dst.ne, 0, 3, 1) * sizeof(float);
    if (!t->step->state.store && t->turns->from < 0)
        memset(t->dst.p, 0, size);
    else
        copy(t->dst.p, array_of(t, &t->src[0], &t->src[1], t->turns->from), size);
}

/* Copies x to the slot's state. */
static void keep_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)first, (void)last, (void)thread;
    const cpu_view *x = &t->src[KEEP_X];
    if (!t->step->state.store && t->turns->to < 0)
        return;
    float *to = array_of(t, &t->src[KEEP_SLOT], &t->src[KEEP_STATE], t->turns->to);
    int64_t rows = ggl_extents(x->ne, 1, 3, 1);
    for (int64_t r = 0; r < rows; r++, to += x->ne[0])
        memcpy(to, cpu_row(x, x->ne, r), (size_t)x->ne[0] * sizeof(float));
}

const cpu_op ggl_cpu_op_state = {.compile = state_compile, .begin = one_unit, .run = state_run};
const cpu_op ggl_cpu_op_keep = {.compile = keep_compile, .begin = one_unit, .run = keep_run};

/* --- recent -------------------------------------------------------------------------------- */

static ggl_status recent_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    return store_compile(c, s, ggl_composite_state(s->node), err);
}

/* Returns row r of the operand for token l. */
static float *token_row(const cpu_view *v, int64_t r, int64_t l) {
    return (float *)(v->p + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]) + (size_t)r * v->nb[1]);
}

/* recent(x [n], k) -> [n, k]: the last k rows, this one included. The state holds the k - 1 rows
 * before it. A unit is SPAN columns. */
enum { SPAN = 512 };

static void recent_begin(cpu_task *t) {
    t->n_units = (t->dst.ne[0] + SPAN - 1) / SPAN;
    t->cost = (double)cpu_min(SPAN, t->dst.ne[0]) * (double)t->dst.ne[1] * (double)t->n;
}

static void recent_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    int64_t n = t->dst.ne[0], from = first * SPAN, k = t->dst.ne[1];
    size_t size = (size_t)(cpu_min(n, last * SPAN) - from) * sizeof(float);
    for (int64_t l = 0; l < t->n; l++) {
        float *s = state_of(t, t->slot[l]);
        for (int64_t j = 0; j < k; j++) /* the state, then this row */
            memcpy(token_row(&t->dst, j, l) + from,
                   j < k - 1 ? s + j * n + from : token_row(&t->src[0], 0, l) + from, size);
        for (int64_t j = 0; j < k - 1; j++)
            memcpy(s + j * n + from, token_row(&t->dst, j + 1, l) + from, size);
    }
}

const cpu_op ggl_cpu_op_recent = {
    .compile = recent_compile, .begin = recent_begin, .run = recent_run};

/* short_conv(x [n], w [k, n]) -> [n]. Its state is that of the `recent` in its body: the k - 1 rows
 * before this one. A unit is SPAN columns. */
static void conv_begin(cpu_task *t) {
    int64_t n = t->dst.ne[0];
    t->n_units = (n + SPAN - 1) / SPAN;
    t->cost = (double)cpu_min(SPAN, n) * (double)t->src[1].ne[0] * (double)t->n;
}

/* A thread's scratch: SPAN columns of the new state, their weights, and k pointers to rows. */
static ggl_status conv_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_store *store = ggl_composite_state(s->node);
    s->thread_size = (size_t)s->src[1].ne[0] * (2 * SPAN * sizeof(float) + sizeof(float *));
    return store_compile(c, s, store, err);
}

/* Returns the weights of n elements from `from` on, k for each, all adjacent: in the source itself,
 * or copied to to[]. */
static const float *taps(const cpu_view *w, int64_t from, int64_t n, int64_t l, float *to) {
    const int64_t k = w->ne[0];
    if (w->nb[1] == (size_t)k * sizeof(float))
        return token_row(w, from, l);
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * k, token_row(w, from + i, l), (size_t)k * sizeof(float));
    return to;
}

/* Computes tokens first .. end - 1, which have the same slot, for columns from .. from + n - 1. */
static void conv_of_slot(const cpu_task *t, int64_t first, int64_t end, int64_t from, int64_t n,
                         char *scratch) {
    const int64_t k = t->src[1].ne[0], all = t->dst.ne[0];
    float *state = state_of(t, t->slot[first]) + from, *kept = (float *)scratch,
          *tap = kept + k * SPAN;
    const float **x = (const float **)(void *)(tap + k * SPAN);
    for (int64_t l = first; l < end; l++) {
        for (int64_t j = 0; j < k; j++) {
            int64_t at = l - (k - 1) + j; /* before `first`: a row of the state */
            x[j] = at < first ? state + (at - first + k - 1) * all
                              : token_row(&t->src[0], 0, at) + from;
        }
        t->b->k.conv(token_row(&t->dst, 0, l) + from, x, taps(&t->src[1], from, n, l, tap), n, k);
    }
    for (int64_t j = 1; j < k; j++) /* through scratch, because rows move within the state */
        memcpy(kept + (j - 1) * SPAN, x[j], (size_t)n * sizeof(float));
    for (int64_t j = 0; j < k - 1; j++)
        memcpy(state + j * all, kept + j * SPAN, (size_t)n * sizeof(float));
}

/* Runs units: each takes its columns through the batch, one run of tokens with the same slot after
 * another. */
static void conv_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    int64_t n = t->dst.ne[0];
    for (int64_t u = first; u < last; u++)
        for (int64_t l = 0, end; l < t->n; l = end) {
            for (end = l + 1; end < t->n && t->slot[end] == t->slot[l];)
                end++;
            conv_of_slot(t, l, end, u * SPAN, cpu_min(SPAN, n - u * SPAN),
                         cpu_thread_scratch(t, thread));
        }
}

const cpu_op ggl_cpu_op_conv = {.compile = conv_compile, .begin = conv_begin, .run = conv_run};
