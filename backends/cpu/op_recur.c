/* Recurrences whose state is a matrix for each head: gated_delta_rule, ssm_scan,
 * gated_linear_attention, wkv6, wkv7. Rows of the state do not depend on each other. A unit is a
 * few rows of one head, which go through all tokens of the batch while they are in the cache. A
 * kernel updates them for one token. */
#include <math.h>
#include <string.h>

#include "cpu.h"

enum { STATE_ROWS = 32 }; /* rows of a unit */

/* How the decay w of a row's elements is computed from its source. */
typedef enum decay_rule {
    DECAY_AS_IS,
    DECAY_EXP,      /* exp(source) */
    DECAY_EXP_RATE, /* exp(source * rate of the head) */
} decay_rule;

/* For each operand of the kernel (kernels.h) the index of the call's source. NONE: the kernel does
 * not read it; without a rate it is 1. */
enum { NONE = -1 };
typedef struct recur_form {
    cpu_recur_kind kind;
    decay_rule rule;
    int w, k, q, v, a, b, rate;
    bool by_root; /* results are divided by sqrt(n) */
} recur_form;

/* Returns the kernel and the operands of a call. */
static const recur_form *form_of(const ggl_tensor *node) {
    static const recur_form form[GGL_COMPOSITE_COUNT] = {
        [GGL_COMPOSITE_GATED_DELTA_RULE] = {CPU_DELTA, DECAY_EXP, 3, 1, 0, 2, NONE, NONE, 4, true},
        [GGL_COMPOSITE_SSM_SCAN] = {CPU_SCAN, DECAY_EXP_RATE, 2, 3, 4, 0, NONE, NONE, 1, false},
        [GGL_COMPOSITE_GATED_LINEAR_ATTENTION] = {CPU_SCAN, DECAY_AS_IS, 3, 1, 0, 2, NONE, NONE,
                                                  NONE, false},
        [GGL_COMPOSITE_WKV6] = {CPU_WKV6, DECAY_AS_IS, 3, 1, 0, 2, NONE, 4, NONE, false},
        [GGL_COMPOSITE_WKV7] = {CPU_WKV7, DECAY_AS_IS, 1, 2, 0, 3, 4, 5, NONE, false},
    };
    return &form[ggl_composite_of(node)];
}

/* True if t has a number for each of the n elements of each head, not one for the head. */
static bool by_element(const ggl_tensor *t, int64_t n) {
    return t->n_dims == 2 && t->ne[0] == n;
}

/* True if the rows of all heads are adjacent. */
static bool is_dense(const ggl_operand *o) {
    return o->ne[1] == 1 || o->nb[1] == (size_t)o->ne[0] * sizeof(float);
}

/* True if CPU_SELECT can run the step: ssm_scan with one row for each head, whose elements have
 * different decays. The rows of neighboring heads are adjacent, and one kernel call updates
 * them. */
static bool can_select(const cpu_step *s, const recur_form *f, const ggl_store *store) {
    return f->rule == DECAY_EXP_RATE && store->ne[1] == 1 &&
           by_element(s->node->src[f->w], store->ne[0]) && is_dense(&s->src[f->w]) &&
           is_dense(&s->src[f->v]) && is_dense(&s->dst);
}

static ggl_status recur_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_store *store = ggl_composite_state(s->node);
    const recur_form *f = form_of(s->node);
    if (!store || store->type != GGL_F32)
        return ggl_fail(err, GGL_UNSUPPORTED, "a state must be f32");
    s->recur.state = ggl_cpu_compiler_store(c, store);
    s->recur.kind = can_select(s, f, store) ? CPU_SELECT : f->kind;
    s->thread_size = (size_t)store->ne[0] * sizeof(float);
    return GGL_OK;
}

/* Returns the number of heads that share a row of keys; 1 if each has its own. */
static int64_t heads_of_group(const cpu_task *t) {
    const cpu_view *k = &t->src[form_of(t->step->node)->k];
    return t->step->recur.state.store->ne[2] / k->ne[1];
}

/* A unit is up to STATE_ROWS rows of a head; with CPU_SELECT, up to STATE_ROWS heads of one row
 * that share their keys. */
static void recur_begin(cpu_task *t) {
    const ggl_store *s = t->step->recur.state.store;
    const bool select = t->step->recur.kind == CPU_SELECT;
    int64_t rows = select ? heads_of_group(t) : s->ne[1], of = select ? s->ne[2] / rows : s->ne[2];
    t->unit.recur.n_per_head = (rows + STATE_ROWS - 1) / STATE_ROWS;
    t->unit.recur.n_rows = rows;
    t->n_units = t->unit.recur.n_per_head * of;
    t->cost = (double)(s->ne[0] * cpu_min(rows, STATE_ROWS) * t->n) * (select ? 2 : 1);
}

/* Returns row r of the operand for token l. */
static float *token_row(const cpu_view *v, int64_t r, int64_t l) {
    return (float *)(v->p + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]) + (size_t)r * v->nb[1]);
}

/* Returns the number of head h for token l, in an operand of shape [h] or [1, h]. */
static float head_number(const cpu_view *v, int64_t h, int64_t l) {
    return v->ne[1] > 1 ? *token_row(v, h, l) : token_row(v, 0, l)[v->ne[0] == 1 ? 0 : h];
}

/* Returns the decay of head h's n elements for token l: in the source itself, or computed into
 * w. */
static const float *decay(const cpu_task *t, const recur_form *f, int64_t h, int64_t l, float rate,
                          float *w) {
    const int64_t n = t->step->recur.state.store->ne[0];
    const cpu_view *from = &t->src[f->w];
    if (f->rule == DECAY_AS_IS)
        return token_row(from, h, l);
    if (by_element(t->step->node->src[f->w], n)) {
        const float *row = token_row(from, h, l);
        if (f->rule == DECAY_EXP_RATE)
            t->b->k.binary[CPU_MUL](w, row, 1, &rate, 0, n);
        t->b->k.unary[CPU_EXP](w, f->rule == DECAY_EXP_RATE ? w : row, n);
        return w;
    }
    float one = head_number(from, h, l);
    if (f->rule == DECAY_EXP_RATE)
        one = one * rate;
    t->b->k.unary[CPU_EXP](&one, &one, 1);
    for (int64_t i = 0; i < n; i++)
        w[i] = one;
    return w;
}

/* Returns the row of source k that head h reads for token l. */
static const float *row_of(const cpu_task *t, int k, int64_t h, int64_t l) {
    const cpu_view *v = &t->src[k];
    return token_row(v, h * v->ne[1] / t->step->recur.state.store->ne[2], l);
}

/* Updates rows j0 .. j0 + n_rows - 1 of head h for token l. w: scratch for a row. */
static void one_token(const cpu_task *t, const recur_form *f, int64_t h, int64_t j0, int64_t n_rows,
                      int64_t l, float *w) {
    const ggl_store *s = t->step->recur.state.store;
    float *y = token_row(&t->dst, h, l) + j0;
    float *state = (float *)cpu_slot(t, &t->step->recur.state, t->slot[l]);
    cpu_recur r = {.n = s->ne[0],
                   .rate = f->rate == NONE ? 1.0f : head_number(&t->src[f->rate], h, l)};
    r.k = row_of(t, f->k, h, l);
    r.q = row_of(t, f->q, h, l);
    r.v = token_row(&t->src[f->v], h, l) + j0;
    r.a = f->a == NONE ? NULL : row_of(t, f->a, h, l);
    r.b = f->b == NONE ? NULL : row_of(t, f->b, h, l);
    r.w = decay(t, f, h, l, r.rate, w);
    t->b->k.recur[f->kind](state + (h * s->ne[1] + j0) * r.n, y, n_rows, &r);
    const float root = (float)sqrt((double)r.n);
    for (int64_t j = 0; f->by_root && j < n_rows; j++)
        y[j] /= root;
}

/* Updates n heads from h on, which have one row each, for token l. */
static void select_token(const cpu_task *t, const recur_form *f, int64_t h, int64_t n, int64_t l) {
    const ggl_store *s = t->step->recur.state.store;
    float *state = (float *)cpu_slot(t, &t->step->recur.state, t->slot[l]);
    const cpu_recur r = {.n = s->ne[0],
                         .k = row_of(t, f->k, h, l),
                         .q = row_of(t, f->q, h, l),
                         .v = token_row(&t->src[f->v], h, l),
                         .a = token_row(&t->src[f->w], h, l),
                         .b = token_row(&t->src[f->rate], 0, l) + h};
    t->b->k.recur[CPU_SELECT](state + h * r.n, token_row(&t->dst, h, l), n, &r);
}

/* Runs units: takes the rows of each through all tokens of the batch, in order. */
static void recur_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    const recur_form *f = form_of(t->step->node);
    float *w = (float *)cpu_thread_scratch(t, thread);
    for (int64_t u = first; u < last; u++) {
        int64_t part = u / t->unit.recur.n_per_head, j0 = u % t->unit.recur.n_per_head * STATE_ROWS;
        int64_t n_rows = cpu_min(STATE_ROWS, t->unit.recur.n_rows - j0);
        for (int64_t l = 0; l < t->n; l++)
            if (t->step->recur.kind == CPU_SELECT)
                select_token(t, f, part * t->unit.recur.n_rows + j0, n_rows, l);
            else
                one_token(t, f, part, j0, n_rows, l, w);
    }
}

const cpu_op ggl_cpu_op_recur = {.compile = recur_compile, .begin = recur_begin, .run = recur_run};
