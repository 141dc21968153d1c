/* Operators along a dimension: sums, maxima, norms, softmax, ranks. A composite calls the kernels
 * of the operators in its body, so that it has the same bits as its body. A unit is a row. */
#include <math.h>
#include <string.h>

#include "cpu.h"

/* A unit is a row of the source. */
static void rows_begin(cpu_task *t) {
    t->n_units = cpu_n_rows(&t->src[0]);
    t->cost = 20 + 4 * (double)t->src[0].ne[0];
}

static ggl_status float_source(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    (void)c;
    if (s->src[0].type != GGL_F32)
        return ggl_fail(err, GGL_UNSUPPORTED, "rows of %s values are not supported",
                        ggl_type_get(s->src[0].type)->name);
    return GGL_OK;
}

/* --- sum and amax over any dimension ------------------------------------------------------- */

static ggl_status reduce_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    s->along.dim = (int)s->node->num[SUM_DIM];
    return float_source(c, s, err);
}

/* Along dimension 0 a unit is a row of src; along another one, a row of dst. */
static void reduce_begin(cpu_task *t) {
    bool within = t->step->along.dim == 0;
    t->n_units = cpu_n_rows(&t->dst);
    t->cost = within ? 10 + 2 * (double)t->src[0].ne[0]
                     : 10 + 3 * (double)t->src[0].ne[0] * (double)t->src[0].ne[t->step->along.dim];
}

/* Sets row r of dst to x[.., 0, ..] op x[.., 1, ..] op .., row by row; op is + or max. A sum starts
 * from +0; a maximum gets +0 added at the end. */
static void reduce_rows(const cpu_task *t, int64_t r, bool sum) {
    const cpu_kernels *k = &t->b->k;
    int dim = t->step->along.dim;
    int64_t n = t->dst.ne[0];
    const float zero = 0.0f;
    float *y = (float *)cpu_row(&t->dst, t->dst.ne, r);
    cpu_view at = t->src[0];
    int64_t count = at.ne[dim];
    at.ne[dim] = 1;
    const char *x = cpu_row(&at, t->dst.ne, r);
    /* 0 + x for the sum; for the maximum x + 0, which changes no comparison */
    k->binary[CPU_ADD](y, (const float *)x, 1, &zero, 0, n);
    for (int64_t j = 1; j < count; j++)
        k->binary[sum ? CPU_ADD : CPU_MAX](y, y, 1, (const float *)(x + (size_t)j * at.nb[dim]), 1,
                                           n);
    if (!sum)
        k->binary[CPU_ADD](y, y, 1, &zero, 0, n);
}

static void sum_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t r = first; r < last; r++)
        if (t->step->along.dim == 0)
            *(float *)cpu_row(&t->dst, t->dst.ne, r) =
                t->b->k.sum((float *)cpu_row(&t->src[0], t->dst.ne, r), t->src[0].ne[0]);
        else
            reduce_rows(t, r, true);
}

static void amax_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t r = first; r < last; r++)
        if (t->step->along.dim == 0)
            *(float *)cpu_row(&t->dst, t->dst.ne, r) =
                t->b->k.amax((float *)cpu_row(&t->src[0], t->dst.ne, r), t->src[0].ne[0]);
        else
            reduce_rows(t, r, false);
}

const cpu_op ggl_cpu_op_sum = {
    .by_item = true, .compile = reduce_compile, .begin = reduce_begin, .run = sum_run};
const cpu_op ggl_cpu_op_amax = {
    .by_item = true, .compile = reduce_compile, .begin = reduce_begin, .run = amax_run};

/* --- composites over rows ------------------------------------------------------------------ */

/* The body of a run function: runs `body` for each row, with the kernels k, the row's length n, the
 * source x and the result y. */
#define EACH_ROW(body)                                                                             \
    const cpu_kernels *k = &t->b->k;                                                               \
    int64_t n = t->src[0].ne[0];                                                                   \
    (void)thread;                                                                                  \
    for (int64_t r = first; r < last; r++) {                                                       \
        const float *x = (const float *)cpu_row(&t->src[0], t->src[0].ne, r);                      \
        float *y = (float *)cpu_row(&t->dst, t->dst.ne, r);                                        \
        body                                                                                       \
    }

static void softmax_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    EACH_ROW({
        float m = k->amax(x, n);
        k->binary[CPU_SUB](y, x, 1, &m, 0, n);
        k->unary[CPU_EXP](y, y, n);
        float s = k->sum(y, n);
        k->binary[CPU_DIV](y, y, 1, &s, 0, n);
    })
}

static void normalised_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    EACH_ROW({
        float s = k->sum(x, n);
        k->binary[CPU_DIV](y, x, 1, &s, 0, n);
    })
}

static void center_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    EACH_ROW({
        float mean = k->sum(x, n) / (float)n;
        k->binary[CPU_SUB](y, x, 1, &mean, 0, n);
    })
}

static void rms_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    EACH_ROW({
        float mean = k->sum_squares(x, n) / (float)n;
        float root = sqrtf(mean + t->step->norm.eps);
        k->binary[CPU_DIV](y, x, 1, &root, 0, n);
    })
}

static void l2_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    EACH_ROW({
        float s = k->sum_squares(x, n);
        float low = t->step->norm.eps;
        float root = sqrtf(s > low || s != s ? s : low);
        k->binary[CPU_DIV](y, x, 1, &root, 0, n);
    })
}

static ggl_status rms_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    s->norm.eps = (float)s->node->num[0];
    return float_source(c, s, err);
}

static ggl_status l2_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    s->norm.eps = (float)(s->node->num[0] * s->node->num[0]);
    return float_source(c, s, err);
}

const cpu_op ggl_cpu_op_softmax = {.by_item = true,
                                   .in_place = true,
                                   .compile = float_source,
                                   .begin = rows_begin,
                                   .run = softmax_run};
const cpu_op ggl_cpu_op_normalised = {.by_item = true,
                                      .in_place = true,
                                      .compile = float_source,
                                      .begin = rows_begin,
                                      .run = normalised_run};
const cpu_op ggl_cpu_op_center = {.by_item = true,
                                  .in_place = true,
                                  .compile = float_source,
                                  .begin = rows_begin,
                                  .run = center_run};
const cpu_op ggl_cpu_op_rms = {
    .by_item = true, .in_place = true, .compile = rms_compile, .begin = rows_begin, .run = rms_run};
const cpu_op ggl_cpu_op_l2 = {
    .by_item = true, .in_place = true, .compile = l2_compile, .begin = rows_begin, .run = l2_run};

static ggl_status hadamard_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    s->norm.eps = (float)pow((double)s->src[0].ne[0], -0.5); /* the factor */
    return float_source(c, s, err);
}

static void hadamard_begin(cpu_task *t) {
    rows_begin(t);
    t->cost *= 4;
}

static void hadamard_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    EACH_ROW({ k->hadamard(y, x, n, t->step->norm.eps); })
}

const cpu_op ggl_cpu_op_hadamard = {.by_item = true,
                                    .in_place = true,
                                    .compile = hadamard_compile,
                                    .begin = hadamard_begin,
                                    .run = hadamard_run};

/* sum_squares: rows of a weight of another type than f32 are unpacked one at a time, so that the weight is never in memory as a
 * whole. */
static ggl_status squares_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_type_info *type = ggl_type_get(s->src[0].type);
    if (s->src[0].type == GGL_F32)
        return GGL_OK;
    if (!type || !type->to_float)
        return float_source(c, s, err);
    s->thread_size = (size_t)s->src[0].ne[0] * sizeof(float);
    return GGL_OK;
}

static void squares_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    const ggl_type type = t->step->src[0].type;
    const int64_t n = t->src[0].ne[0];
    void (*unpack)(const void *, float *, int64_t) =
        t->b->k.to_f32[type] ? t->b->k.to_f32[type] : ggl_type_get(type)->to_float;
    for (int64_t r = first; r < last; r++) {
        const char *x = cpu_row(&t->src[0], t->src[0].ne, r);
        if (type != GGL_F32) {
            float *row = (float *)(void *)cpu_thread_scratch(t, thread);
            unpack(x, row, n);
            x = (const char *)row;
        }
        *(float *)(void *)cpu_row(&t->dst, t->src[0].ne, r) =
            t->b->k.sum_squares((const float *)(const void *)x, n);
    }
}

const cpu_op ggl_cpu_op_sum_squares = {
    .by_item = true, .compile = squares_compile, .begin = rows_begin, .run = squares_run};

/* weighted(y [n, k], w [k]) -> [n]: the sum of the k rows of y, times w. A unit is one element of
 * the batch. */
static void weighted_begin(cpu_task *t) {
    t->n_units = t->dst.ne[3];
    t->cost = 10 + 3 * (double)ggl_extents(t->src[0].ne, 0, 2, 1);
}

static void weighted_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    const cpu_view *x = &t->src[0], *w = &t->src[1];
    for (int64_t l = first; l < last; l++) {
        float *y = (float *)(t->dst.p + (size_t)l * t->dst.nb[3]);
        const char *rows = x->p + (x->ne[3] == 1 ? 0 : (size_t)l * x->nb[3]);
        const float *factor = (const float *)(w->p + (w->ne[3] == 1 ? 0 : (size_t)l * w->nb[3]));
        memset(y, 0, (size_t)x->ne[0] * sizeof *y);
        for (int64_t j = 0; j < x->ne[1]; j++)
            t->b->k.mul_add(y, (const float *)(rows + (size_t)j * x->nb[1]), factor[j], x->ne[0]);
    }
}

const cpu_op ggl_cpu_op_weighted = {
    .by_item = true, .compile = float_source, .begin = weighted_begin, .run = weighted_run};

/* --- order --------------------------------------------------------------------------------- */

/* True if x[a] ranks before x[b]: it is larger, or equal with a < b. NaN ranks last. */
static bool before(const float *x, int64_t a, int64_t b) {
    if (isnan(x[a]) || isnan(x[b]))
        return isnan(x[b]) && (!isnan(x[a]) || a < b);
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

static void rank_begin(cpu_task *t) {
    t->n_units = cpu_n_rows(&t->src[0]);
    t->cost = 10 * (double)t->src[0].ne[0] * (double)t->src[0].ne[0];
}

static void rank_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t r = first; r < last; r++) {
        const float *x = (const float *)cpu_row(&t->src[0], t->src[0].ne, r);
        float *y = (float *)cpu_row(&t->dst, t->dst.ne, r);
        for (int64_t i = 0; i < t->src[0].ne[0]; i++) {
            int64_t place = 0;
            for (int64_t j = 0; j < t->src[0].ne[0]; j++)
                place += before(x, j, i);
            y[i] = (float)place;
        }
    }
}

const cpu_op ggl_cpu_op_rank = {
    .by_item = true, .compile = float_source, .begin = rank_begin, .run = rank_run};

static void topk_begin(cpu_task *t) {
    t->n_units = t->dst.ne[3];
    t->cost = 10 * (double)t->src[0].ne[0] + 20 * (double)t->dst.ne[0] * (double)t->dst.ne[0];
}

/* Insertion sort into a list of the best k so far; skips elements that rank after its last one. */
static void topk_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t l = first; l < last; l++) {
        const float *x =
            (const float *)(t->src[0].p + (t->src[0].ne[3] == 1 ? 0 : (size_t)l * t->src[0].nb[3]));
        int32_t *y = (int32_t *)(t->dst.p + (size_t)l * t->dst.nb[3]);
        int64_t k = t->dst.ne[0], n = 0;
        for (int64_t i = 0; i < t->src[0].ne[0]; i++) {
            if (n == k && !before(x, i, y[k - 1]))
                continue;
            int64_t at = n < k ? n++ : k - 1;
            for (; at > 0 && before(x, i, y[at - 1]); at--)
                y[at] = y[at - 1];
            y[at] = (int32_t)i;
        }
    }
}

const cpu_op ggl_cpu_op_topk = {
    .by_item = true, .compile = float_source, .begin = topk_begin, .run = topk_run};
