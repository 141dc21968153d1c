/* What passes from token to token. state and keep stand in loops; the named recurrences take all
 * tokens of the batch, in order, for a piece of the state that no other thread touches. */
#include <math.h>
#include <string.h>

#include "cpu.h"

/* Slot `slot`'s array of the step's store. */
static float *state_of(const cpu_task *t, int64_t slot) {
    return (float *)(t->stores + t->step->store_at[0] +
                     (size_t)slot * t->step->store[0]->slot_size);
}

static ggl_status store_compile(cpu_compiler *c, cpu_step *s, const ggl_store *store,
                                ggl_error *err) {
    if (!store || store->type != GGL_F32)
        return ggl_fail(err, GGL_UNSUPPORTED, "a state that is not of f32");
    s->store[0] = store;
    s->store_at[0] = cpu_compiler_store(c, store);
    return GGL_OK;
}

static ggl_status state_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    return store_compile(c, s, s->node->store[0], err);
}

static ggl_status keep_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    return store_compile(c, s, s->node->src[0]->store[0], err);
}

static void one_unit(cpu_task *t) {
    t->n_units = 1;
    t->cost = 0;
}

static void state_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)first, (void)last, (void)thread;
    const ggl_store *s = t->step->store[0];
    memcpy(t->dst.p, state_of(t, *(const int32_t *)t->src[0].p),
           (size_t)ggl_extents(s->ne, 0, 3, 1) * sizeof(float));
}

static void keep_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)first, (void)last, (void)thread;
    const cpu_view *x = &t->src[1];
    float *to = state_of(t, *(const int32_t *)t->src[2].p);
    int64_t rows = ggl_extents(x->ne, 1, 3, 1);
    for (int64_t r = 0; r < rows; r++, to += x->ne[0])
        memcpy(to, cpu_row(x, x->ne, r), (size_t)x->ne[0] * sizeof(float));
}

const cpu_op cpu_op_state = {.compile = state_compile, .begin = one_unit, .run = state_run};
const cpu_op cpu_op_keep = {.compile = keep_compile, .begin = one_unit, .run = keep_run};

/* --- named recurrences --------------------------------------------------------------------- */

static ggl_status recur_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_body *body = s->node->body;
    for (int i = 0; i < body->n_node; i++)
        if (body->node[i]->op == GGL_OP_STATE)
            return store_compile(c, s, body->node[i]->store[0], err);
    return ggl_fail(err, GGL_UNSUPPORTED, "%s without a state", s->node->call);
}

/* Row r of what token l sees of an operand. */
static float *token_row(const cpu_view *v, int64_t r, int64_t l) {
    return (float *)(v->p + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]) + (size_t)r * v->nb[1]);
}

/* recent(x [n], k) -> [n, k]; the state has the k - 1 rows before. A unit: SPAN columns. */
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
        for (int64_t j = 0; j < k; j++) /* row j + 1 of what is seen is row j of what is kept */
            memcpy(token_row(&t->dst, j, l) + from,
                   j < k - 1 ? s + j * n + from : token_row(&t->src[0], 0, l) + from, size);
        for (int64_t j = 0; j < k - 1; j++)
            memcpy(s + j * n + from, token_row(&t->dst, j + 1, l) + from, size);
    }
}

const cpu_op cpu_op_recent = {.compile = recur_compile, .begin = recent_begin, .run = recent_run};

/* Rows of the state in a unit: through all tokens before the next unit, so that they stay in the
 * inner cache. */
enum { STATE_ROWS = 16 };

static void matrix_begin(cpu_task *t) {
    const ggl_store *s = t->step->store[0];
    t->unit[0] = (s->ne[1] + STATE_ROWS - 1) / STATE_ROWS;
    t->n_units = t->unit[0] * s->ne[2];
    t->cost = (double)(s->ne[0] * STATE_ROWS * t->n);
}

/* Element h of a row of one number for each head. */
static float head_number(const cpu_view *v, int64_t h, int64_t l) {
    return token_row(v, 0, l)[v->ne[0] == 1 ? 0 : h];
}

/* gated_delta_rule(q [dk, h], k [dk, h], v [dv, h], g [h], beta [h]) -> [dv, h]; state [dk, dv, h]
 */
static void delta_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    const ggl_store *s = t->step->store[0];
    int64_t dk = s->ne[0], dv = s->ne[1];
    float root = (float)sqrt((double)dk);
    for (int64_t u = first; u < last; u++) {
        int64_t h = u / t->unit[0], j0 = u % t->unit[0] * STATE_ROWS,
                j1 = cpu_min(j0 + STATE_ROWS, dv);
        for (int64_t l = 0; l < t->n; l++) {
            float *state = state_of(t, t->slot[l]) + h * dk * dv,
                  decay = head_number(&t->src[3], h, l);
            float beta = head_number(&t->src[4], h, l), *y = token_row(&t->dst, h, l);
            const float *q = token_row(&t->src[0], h, l), *k = token_row(&t->src[1], h, l),
                        *v = token_row(&t->src[2], h, l);
            t->b->k.unary[CPU_EXP](&decay, &decay, 1);
            for (int64_t j = j0; j < j1; j++)
                y[j] = t->b->k.delta_row(state + j * dk, k, q, dk, decay, v[j], beta) / root;
        }
    }
}

/* ssm_scan(x [d, h], dt [h], a [h], b [n, h], c [n, h]) -> [d, h]; state [n, d, h] */
static void scan_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    const ggl_store *s = t->step->store[0];
    int64_t n = s->ne[0], d = s->ne[1];
    for (int64_t u = first; u < last; u++) {
        int64_t h = u / t->unit[0], j0 = u % t->unit[0] * STATE_ROWS,
                j1 = cpu_min(j0 + STATE_ROWS, d);
        for (int64_t l = 0; l < t->n; l++) {
            float *state = state_of(t, t->slot[l]) + h * n * d, dt = head_number(&t->src[1], h, l);
            float decay = dt * head_number(&t->src[2], h, l), *y = token_row(&t->dst, h, l);
            const float *x = token_row(&t->src[0], h, l), *b = token_row(&t->src[3], h, l),
                        *c = token_row(&t->src[4], h, l);
            t->b->k.unary[CPU_EXP](&decay, &decay, 1);
            for (int64_t j = j0; j < j1; j++)
                y[j] = t->b->k.scan_row(state + j * n, b, c, n, decay, x[j] * dt);
        }
    }
}

const cpu_op cpu_op_delta = {.compile = recur_compile, .begin = matrix_begin, .run = delta_run};
const cpu_op cpu_op_scan = {.compile = recur_compile, .begin = matrix_begin, .run = scan_run};
