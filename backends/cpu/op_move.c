/* Operators that only move elements. All except pick and reshape are strided copies: dst is dense,
 * the source is read at some strides. */
#include <string.h>

#include "cpu.h"

/* True if move_row can copy from src[0] to dst. */
static bool same_or_float(const cpu_step *s) {
    return s->src[0].type == s->dst.type || s->dst.type == GGL_F32;
}

static ggl_status move_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    (void)c;
    if (!same_or_float(s))
        return ggl_fail(err, GGL_UNSUPPORTED, "a move of %s to %s values",
                        ggl_type_get(s->src[0].type)->name, ggl_type_get(s->dst.type)->name);
    return GGL_OK;
}

/* Copies n elements (whole blocks) of a dense row; converts them to f32 if the types differ. */
static void move_row(const cpu_task *t, char *dst, const char *src, int64_t n) {
    ggl_type from = t->step->src[0].type, to = t->step->dst.type;
    if (from == to)
        memcpy(dst, src, ggl_row_size(to, n));
    else if (t->b->k.to_f32[from])
        t->b->k.to_f32[from](src, (float *)dst, n);
    else
        ggl_type_get(from)->to_float(src, (float *)dst, n);
}

/* --- copy to another shape ----------------------------------------------------------------- */

/* A unit is one element of the batch, or everything if dst is not batched. dst is dense. */
static void copy_begin(cpu_task *t) {
    t->n_units = t->step->dst.ne[GGL_BATCH_DIM] == GGL_N ? t->dst.ne[3] : 1;
    t->cost = 10 + (double)ggl_extents(t->src[0].ne, 0, 3, 1);
}

static void copy_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    const cpu_view *x = &t->src[0];
    bool batched = t->step->dst.ne[GGL_BATCH_DIM] == GGL_N;
    size_t row_size = ggl_row_size(t->step->dst.type, x->ne[0]);
    for (int64_t u = first; u < last; u++) {
        char *y = t->dst.p + (batched ? (size_t)u * t->dst.nb[3] : 0);
        for (int64_t l = 0; l < (batched ? 1 : x->ne[3]); l++)
            for (int64_t k = 0; k < x->ne[2]; k++)
                for (int64_t j = 0; j < x->ne[1]; j++, y += row_size)
                    move_row(t, y,
                             x->p + (size_t)(batched ? u : l) * x->nb[3] + (size_t)k * x->nb[2] +
                                 (size_t)j * x->nb[1],
                             x->ne[0]);
    }
}

static ggl_status copy_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    int64_t from = 1, to = 1;
    for (int d = 0; d < GGL_BATCH_DIM; d++) {
        from *= s->src[0].ne[d];
        to *= s->dst.ne[d];
    }
    bool fits = s->src[0].ne[3] == GGL_N || s->dst.ne[3] == GGL_N
                    ? from == to && s->src[0].ne[3] == s->dst.ne[3]
                    : from * s->src[0].ne[3] == to * s->dst.ne[3];
    if (!fits)
        return ggl_fail(err, GGL_UNSUPPORTED, "a copy of %lld elements to %lld", (long long)from,
                        (long long)to);
    return move_compile(c, s, err);
}

const cpu_op ggl_cpu_op_copy = {
    .by_item = true, .compile = copy_compile, .begin = copy_begin, .run = copy_run};

/* --- strided copies ------------------------------------------------------------------------ */

/* Copies n 4-byte elements that are `step` bytes apart in x; a step of 0 repeats one element. */
static void gather_row(char *y, const char *x, size_t step, int64_t n) {
    if (step == 4) {
        memcpy(y, x, (size_t)n * 4);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(y + 4 * i, x + (size_t)i * step, 4);
}

/* A unit is a row of dst. */
static void strided_begin(cpu_task *t) {
    t->n_units = cpu_n_rows(&t->dst);
    t->cost = 10 + 2 * (double)t->dst.ne[0];
}

/* Copies rows first .. last-1 of dst. The source has dst's shape, strides nb[], and begins at p. */
static void strided_run(const cpu_task *t, const char *p, const size_t *nb, int64_t first,
                        int64_t last) {
    for (int64_t r = first; r < last; r++) {
        int64_t j = r % t->dst.ne[1], k = r / t->dst.ne[1] % t->dst.ne[2],
                l = r / t->dst.ne[1] / t->dst.ne[2];
        gather_row(cpu_row(&t->dst, t->dst.ne, r),
                   p + (size_t)j * nb[1] + (size_t)k * nb[2] + (size_t)l * nb[3], nb[0],
                   t->dst.ne[0]);
    }
}

/* Fails unless sources and dst have the same type, of 4 bytes; sets along.dim to the first
 * number. */
static ggl_status four_bytes(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    (void)c;
    for (int i = 0; i < s->n_src; i++)
        if (s->src[i].type != s->dst.type || ggl_type_get(s->dst.type)->size != 4)
            return ggl_fail(err, GGL_UNSUPPORTED, "'%s' does not support %s values",
                            ggl_op_get(s->node->op).name, ggl_type_get(s->src[i].type)->name);
    s->along.dim = s->node->n_num > 0 ? (int)s->node->num[0] : 0;
    return GGL_OK;
}

static void split_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    strided_run(t,
                t->src[0].p + (size_t)t->step->node->num[SPLIT_FIRST] *
                                  t->src[SPLIT_X].nb[t->step->along.dim],
                t->src[0].nb, first, last);
}

static void repeat_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    size_t nb[GGL_MAX_DIMS];
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        nb[d] = t->src[0].ne[d] == 1 ? 0 : t->src[0].nb[d];
    strided_run(t, t->src[0].p, nb, first, last);
}

static void transpose_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    int a = (int)t->step->node->num[TRANSPOSE_A], b = (int)t->step->node->num[TRANSPOSE_B];
    size_t nb[GGL_MAX_DIMS];
    memcpy(nb, t->src[0].nb, sizeof nb);
    nb[a] = t->src[0].nb[b];
    nb[b] = t->src[0].nb[a];
    strided_run(t, t->src[0].p, nb, first, last);
}

/* Returns v's stride along dimension d; 0 if v broadcasts there. */
static size_t stride(const cpu_view *v, int d) {
    return v->ne[d] == 1 ? 0 : v->nb[d];
}

static void concat_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    const cpu_view *x = &t->src[CONCAT_X], *y = &t->src[CONCAT_Y];
    int dim = t->step->along.dim;
    for (int64_t r = first; r < last; r++) {
        char *to = cpu_row(&t->dst, t->dst.ne, r);
        if (dim == 0) {
            memcpy(to, cpu_row(x, t->dst.ne, r), (size_t)x->ne[0] * 4);
            memcpy(to + x->ne[0] * 4, cpu_row(y, t->dst.ne, r), (size_t)y->ne[0] * 4);
            continue;
        }
        int64_t at[4] = {0, r % t->dst.ne[1], r / t->dst.ne[1] % t->dst.ne[2],
                         r / t->dst.ne[1] / t->dst.ne[2]};
        const cpu_view *v = at[dim] < x->ne[dim] ? x : y;
        at[dim] -= v == x ? 0 : x->ne[dim];
        memcpy(to,
               v->p + (size_t)at[1] * stride(v, 1) + (size_t)at[2] * stride(v, 2) +
                   (size_t)at[3] * stride(v, 3),
               (size_t)t->dst.ne[0] * 4);
    }
}

static void iota_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t r = first; r < last; r++)
        for (int64_t i = 0; i < t->dst.ne[0]; i++)
            ((float *)cpu_row(&t->dst, t->dst.ne, r))[i] = (float)i;
}

const cpu_op ggl_cpu_op_split = {
    .by_item = true, .compile = four_bytes, .begin = strided_begin, .run = split_run};
const cpu_op ggl_cpu_op_repeat = {
    .by_item = true, .compile = four_bytes, .begin = strided_begin, .run = repeat_run};
const cpu_op ggl_cpu_op_transpose = {
    .by_item = true, .compile = four_bytes, .begin = strided_begin, .run = transpose_run};
const cpu_op ggl_cpu_op_concat = {
    .by_item = true, .compile = four_bytes, .begin = strided_begin, .run = concat_run};
const cpu_op ggl_cpu_op_iota = {
    .by_item = true, .compile = four_bytes, .begin = strided_begin, .run = iota_run};

/* --- pick ---------------------------------------------------------------------------------- */

static ggl_status pick_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    s->along.dim = s->node->src[0]->n_dims - 1;
    if (s->src[PICK_I].type != GGL_I32)
        return ggl_fail(err, GGL_UNSUPPORTED, "an index of type %s is not supported",
                        ggl_type_get(s->src[PICK_I].type)->name);
    return move_compile(c, s, err);
}

/* A unit is one index of one element of the batch. */
static void pick_begin(cpu_task *t) {
    t->unit.n_picked = t->src[PICK_I].ne[0];
    t->n_units = t->unit.n_picked * t->dst.ne[3];
    t->cost = 10 + (double)ggl_extents(t->dst.ne, 0, 3, 1) / (double)t->unit.n_picked;
}

/* For an index out of range, floats become NaN and integers -1. */
static void pick_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    const cpu_view *x = &t->src[PICK_T], *index = &t->src[PICK_I];
    int dim = t->step->along.dim; /* the dimension that is indexed; those below it form the slice */
    int64_t n0 = dim > 0 ? x->ne[0] : 1, n1 = dim > 1 ? x->ne[1] : 1, n2 = dim > 2 ? x->ne[2] : 1;
    bool list = t->step->node->src[PICK_I]->n_dims > 0;
    for (int64_t u = first; u < last; u++) {
        int64_t e = u % t->unit.n_picked, l = u / t->unit.n_picked;
        int64_t at =
            ((const int32_t *)(index->p + (index->ne[3] == 1 ? 0 : (size_t)l * index->nb[3])))[e];
        bool inside = at >= 0 && at < x->ne[dim];
        char *to = t->dst.p + (size_t)l * t->dst.nb[3] + (list ? (size_t)e * t->dst.nb[dim] : 0);
        const char *from = x->p + (inside ? (size_t)at * x->nb[dim] : 0) +
                           (dim < 3 && x->ne[3] != 1 ? (size_t)l * x->nb[3] : 0);
        for (int64_t k = 0; k < n2; k++)
            for (int64_t j = 0; j < n1; j++) {
                char *row = to + (dim > 1 ? (size_t)j * t->dst.nb[1] : 0) +
                            (dim > 2 ? (size_t)k * t->dst.nb[2] : 0);
                if (inside)
                    move_row(t, row,
                             from + (dim > 1 ? (size_t)j * x->nb[1] : 0) +
                                 (dim > 2 ? (size_t)k * x->nb[2] : 0),
                             n0);
                else
                    memset(row, 0xff, ggl_row_size(t->step->dst.type, n0));
            }
    }
}

const cpu_op ggl_cpu_op_pick = {
    .by_item = true, .compile = pick_compile, .begin = pick_begin, .run = pick_run};
