/* Recurrences whose state is a matrix for each head: gated_delta_rule, ssm_scan,
 * gated_linear_attention, wkv6, wkv7. Rows of the state do not depend on each other. A unit is a
 * few rows of one head, which go through all tokens of the batch while they are in the cache. A
 * kernel updates them for one token. */
#include <math.h>
#include <string.h>

#include "cpu.h"
#include "prefetch.h"

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

/* Numbers of an operand that a unit reads or writes: those of a token are `step` bytes after those of the token before. */
typedef struct stream {
    char *p; /* NULL: none */
    size_t step;
    int64_t n;
} stream;

/* All of a unit. w: the row of the decay's source, or its number for the head; CPU_SELECT has the source of its own decays in a and b. */
typedef struct streams {
    stream k, q, v, a, b, w, rate, y;
    int64_t first_row, n_rows; /* in the state */
} streams;

/* n numbers from `first` on of row r. */
static stream stream_of(const cpu_view *v, int64_t r, int64_t first, int64_t n) {
    return (stream){(char *)v->p + (size_t)r * v->nb[1] + (size_t)first * sizeof(float),
                    v->ne[3] == 1 ? 0 : v->nb[3], n};
}

static float *at(const stream *s, int64_t l) {
    return s->p ? (float *)(s->p + (size_t)l * s->step) : NULL;
}

/* The number of head h in source k of shape [h] or [1, h]. */
static stream number_of(const cpu_task *t, int k, int64_t h) {
    if (k == NONE)
        return (stream){0};
    const cpu_view *v = &t->src[k];
    return v->ne[1] > 1 ? stream_of(v, h, 0, 1) : stream_of(v, 0, v->ne[0] == 1 ? 0 : h, 1);
}

/* The row of source k that head h reads. */
static stream row_of(const cpu_task *t, int k, int64_t h) {
    if (k == NONE)
        return (stream){0};
    const ggl_store *s = t->step->recur.state.store;
    return stream_of(&t->src[k], h * t->src[k].ne[1] / s->ne[2], 0, s->ne[0]);
}

/* Returns what unit u reads. */
static streams streams_of(const cpu_task *t, const recur_form *f, int64_t u) {
    const ggl_store *s = t->step->recur.state.store;
    const int64_t j = u % t->unit.recur.n_per_head * STATE_ROWS,
                  part = u / t->unit.recur.n_per_head;
    const bool select = t->step->recur.kind == CPU_SELECT;
    const int64_t h = select ? part * t->unit.recur.n_rows + j : part, j0 = select ? 0 : j;
    const int64_t n_rows = cpu_min(STATE_ROWS, t->unit.recur.n_rows - j);
    const bool row = f->rule == DECAY_AS_IS || by_element(t->step->node->src[f->w], s->ne[0]);
    const stream w = row ? stream_of(&t->src[f->w], h, 0, s->ne[0]) : number_of(t, f->w, h),
                 rate = number_of(t, f->rate, h);
    return (streams){.k = row_of(t, f->k, h),
                     .q = row_of(t, f->q, h),
                     .v = stream_of(&t->src[f->v], h, j0, n_rows),
                     .y = stream_of(&t->dst, h, j0, n_rows),
                     .a = select ? w : row_of(t, f->a, h),
                     .b = select ? rate : row_of(t, f->b, h),
                     .w = select ? (stream){0} : w,
                     .rate = rate,
                     .first_row = h * s->ne[1] + j0,
                     .n_rows = n_rows};
}

/* Prefetches what token l reads. Its rows are so far from those of the token before that the processor does not foresee them.
 * As a function of its own, gcc would remove it: it finds no effect. */
INLINE void fetch_token(const streams *u, int64_t l) {
    const stream *const s[] = {&u->k, &u->q, &u->v, &u->a, &u->b, &u->w};
    for (size_t i = 0; i < sizeof s / sizeof *s; i++)
        if (s[i]->step)
            fetch(at(s[i], l), s[i]->n * (int64_t)sizeof(float));
}

/* Returns the decay of a row's elements for token l: in the source itself, or computed into w. */
static const float *decay(const cpu_task *t, const recur_form *f, const streams *u, int64_t l,
                          float rate, float *w) {
    const float *from = at(&u->w, l);
    float one, *to = u->w.n > 1 ? w : &one;
    if (f->rule == DECAY_AS_IS)
        return from;
    if (f->rule == DECAY_EXP_RATE) {
        t->b->k.binary[CPU_MUL](to, from, 1, &rate, 0, u->w.n);
        from = to;
    }
    t->b->k.unary[CPU_EXP](to, from, u->w.n);
    for (int64_t i = 0; u->w.n == 1 && i < u->k.n; i++)
        w[i] = one; /* in whole vectors, from which the kernel reads at once */
    return w;
}

/* Updates the rows of a unit for token l. w: scratch for a row. */
static void one_token(const cpu_task *t, const recur_form *f, const streams *u, int64_t l,
                      float *w) {
    const float *rate = at(&u->rate, l);
    float *state = (float *)cpu_slot(t, &t->step->recur.state, t->slot[l]), *y = at(&u->y, l);
    cpu_recur r = {.n = u->k.n,
                   .k = at(&u->k, l),
                   .q = at(&u->q, l),
                   .v = at(&u->v, l),
                   .a = at(&u->a, l),
                   .b = at(&u->b, l),
                   .rate = rate ? *rate : 1.0f};
    r.w = u->w.p ? decay(t, f, u, l, r.rate, w) : NULL;
    t->b->k.recur[t->step->recur.kind](state + u->first_row * r.n, y, u->n_rows, &r);
    const float root = (float)sqrt((double)r.n);
    for (int64_t j = 0; f->by_root && j < u->n_rows; j++)
        y[j] /= root;
}

/* Runs units: takes the rows of each through all tokens of the batch, in order. */
static void recur_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    const recur_form *f = form_of(t->step->node);
    float *w = (float *)cpu_thread_scratch(t, thread);
    for (int64_t i = first; i < last; i++) {
        const streams u = streams_of(t, f, i);
        for (int64_t l = 0; l < t->n; l++) {
            if (l + 1 < t->n)
                fetch_token(&u, l + 1);
            one_token(t, f, &u, l, w);
        }
    }
}

const cpu_op ggl_cpu_op_recur = {.compile = recur_compile, .begin = recur_begin, .run = recur_run};
