/* The products of gradients: linear_back, x = W^T dy, and outer_sum, the sum of x dy^T over the batch. Each number is one chain
 * of fused multiply-adds, in the order of the terms, so lanes are neighbouring elements of a row, and terms may be added in any
 * number of pieces: the kernel `chains` goes on from what is there. Both pack what the lanes read to stripes of STRIPE
 * elements, which stay in the core's second cache while all rows pass: the kernel needs a load for six products. What it adds to is
 * fetched one call ahead. */
#include <math.h>
#include <string.h>

#include "columns.h"

enum {
    STRIPE = 64, /* elements that the kernel computes side by side; a multiple of all vectors */
    DEPTH = 256, /* terms that are packed together: a stripe of them is 64 KB */
    TILE = 256,  /* elements of a unit of linear_back; whole blocks of all types */
    PART = 48,   /* least columns of a unit */
    AHEAD = 8,   /* rows that are fetched before they are unpacked */
    FEW = 12,    /* of fewer columns, f32 rows are read where they are */
    ROWS = 96,   /* least rows of a unit of outer_sum, and */
    MOST = 384,  /* most: each vector is packed once for all of them */
    WIDE = 512   /* and elements of these */
};
_Static_assert(TILE % STRIPE == 0 && WIDE % STRIPE == 0, "whole stripes");

/* Fetches n floats of each of n_y rows, to which the next call of the kernel will add. */
static void fetch_rows(float *const *y, int n_y, int64_t n) {
    for (int c = 0; c < n_y; c++)
        for (int64_t i = 0; i < n; i += 16)
            __builtin_prefetch(y[c] + i, 1);
}

static size_t align16(size_t n_floats) {
    return (n_floats + 15) / 16 * 16;
}

/* Returns how many of n terms are packed together. */
static int64_t depth_of(int64_t n) {
    return cpu_min(DEPTH, n);
}

/* Returns the elements of a unit of linear_back, of n, in whole stripes. */
static int64_t width_of(int64_t n) {
    return cpu_min(TILE, (n + STRIPE - 1) / STRIPE * STRIPE);
}

/* Returns how many of n rows of a unit of outer_sum are packed together. */
static int64_t rows_of(int64_t n) {
    return cpu_min(MOST, n);
}

/* --- linear_back --------------------------------------------------------------------------- */

static cpu_lists lists_of(const cpu_task *t) {
    cpu_lists l = ggl_cpu_lists_at(t->shared, cpu_n_rows(&t->dst),
                                   ggl_extents(t->src[LINEAR_W].ne, 2, GGL_MAX_DIMS, 1));
    l.n_active = t->unit.linear.n_matrices;
    return l;
}

/* Columns are sorted by matrix in the shared scratch. */
static bool back_alone(const ggl_step *s) {
    return s->n_src > LINEAR_INDEX || s->src[LINEAR_W].ne[2] > 1 || s->src[LINEAR_W].ne[3] != 1;
}

static ggl_status back_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_operand *dy = &s->src[LINEAR_BACK_DY], *w = &s->src[LINEAR_BACK_W];
    const ggl_type_info *type = ggl_type_get(w->type);
    if (dy->type != GGL_F32 || !type || !type->to_float || w->type == GGL_I32)
        return ggl_fail(err, GGL_UNSUPPORTED, "linear_back of %s with a matrix of %s",
                        ggl_type_get(dy->type)->name, type ? type->name : "no type");
    s->linear.batch_of_w = ggl_is_batched(s->node->src[LINEAR_BACK_W]);
    const int64_t columns = ggl_extents(s->dst.ne, 1, GGL_MAX_DIMS, ggl_cpu_compiler_n_max(c)),
                  matrices = ggl_extents(w->ne, 2, GGL_MAX_DIMS, ggl_cpu_compiler_n_max(c));
    if (columns > INT32_MAX || matrices > INT32_MAX)
        return ggl_fail(err, GGL_LIMIT, "linear_back with %lld columns is not supported",
                        (long long)columns);
    if (matrices > 1 || s->n_src > LINEAR_INDEX)
        s->shared_size = ggl_cpu_lists_size(columns, matrices);
    s->thread_size = (size_t)((depth_of(w->ne[1]) + 1) * width_of(s->dst.ne[0])) * sizeof(float);
    return GGL_OK;
}

/* A unit is a tile of the results of some columns with the same matrix. */
static void back_begin(cpu_task *t) {
    const int64_t n = t->dst.ne[0], n_cols = cpu_n_rows(&t->dst), tiles = (n + TILE - 1) / TILE;
    int64_t n_parts = 1;
    t->unit.linear.n_matrices = 1;
    if (!ggl_cpu_one_matrix(t)) {
        cpu_lists l = lists_of(t);
        ggl_cpu_lists_sort(&l, n_cols, ggl_cpu_matrix_of, t);
        for (int64_t c = 0; l.start[l.n_matrices] < n_cols && c < n_cols; c++)
            for (int64_t i = 0; ggl_cpu_matrix_of(t, c) < 0 && i < n; i++)
                ((float *)cpu_row(&t->dst, t->dst.ne, c))[i] = NAN;
        t->unit.linear.n_matrices = l.n_active;
    } else {
        /* several units for each thread, so that all end at about the same time; but each part unpacks the matrix */
        const int64_t units = t->n_threads > 1 ? 6 * t->n_threads : 1;
        n_parts = cpu_min((units + tiles - 1) / tiles, cpu_max(n_cols / PART, 1));
    }
    t->unit.linear.n_parts = n_parts;
    t->unit.linear.n_per_matrix = tiles;
    t->n_units = t->unit.linear.n_matrices * tiles * n_parts;
    t->cost = (double)(cpu_min(n, TILE) * t->src[LINEAR_BACK_W].ne[1]) * (double)n_cols /
              (double)(cpu_max(t->unit.linear.n_matrices, 1) * n_parts);
}

/* Columns of one matrix. */
typedef struct columns {
    const char *w;
    const int32_t *order; /* NULL: columns `first` and on */
    int64_t first, n;
} columns;

/* Sets y[] and b[] to up to CPU_CHAIN_ROWS columns from the i-th on: element i0 of the results, and element j0 of dy. Returns
 * how many there are. */
static int take(const cpu_task *t, const columns *s, int64_t i, int64_t i0, int64_t j0, float **y,
                const float **b) {
    const int n = (int)cpu_min(CPU_CHAIN_ROWS, s->n - i);
    for (int e = 0; e < n; e++) {
        const int64_t c = s->order ? s->order[s->first + i + e] : s->first + i + e;
        y[e] = (float *)cpu_row(&t->dst, t->dst.ne, c) + i0;
        b[e] = (const float *)cpu_row(&t->src[LINEAR_BACK_DY], t->dst.ne, c) + j0;
    }
    return n;
}

/* Unpacks elements i0 .. i0 + n - 1 of `depth` rows to stripes; row: scratch of TILE numbers. */
static void unpack(const cpu_task *t, const char *w, int64_t i0, int64_t n, int depth, float *to,
                   float *row) {
    const ggl_type type = t->step->src[LINEAR_BACK_W].type;
    const ggl_type_info *info = ggl_type_get(type);
    void (*convert)(const void *, float *, int64_t) =
        t->b->k.to_f32[type] ? t->b->k.to_f32[type] : info->to_float;
    const size_t row_size = t->src[LINEAR_BACK_W].nb[1],
                 size = (size_t)(n / info->block) * info->size;
    const int64_t most = depth_of(t->src[LINEAR_BACK_W].ne[1]);
    const char *from = w + (size_t)(i0 / info->block) * info->size;
    for (int e = 0; e < depth; e++, from += row_size) {
        const float *x = (const float *)from;
        for (size_t i = 0; i < size && e + AHEAD < depth; i += 64)
            __builtin_prefetch(from + AHEAD * row_size + i);
        if (type != GGL_F32) {
            convert(from, row, n);
            x = row;
        }
        for (int64_t i = 0; i < n; i += STRIPE)
            memcpy(to + i * most + (int64_t)e * STRIPE, x + i,
                   (size_t)cpu_min(STRIPE, n - i) * sizeof *to);
    }
}

/* Adds the products with `depth` rows from j0 on to elements i0 .. i0 + n - 1 of the columns' results. stripes: as unpack()
 * writes them; NULL: f32 rows, which are read where they are. */
static void add_rows(const cpu_task *t, const columns *s, int64_t i0, int64_t n, int64_t j0,
                     int depth, const float *stripes) {
    const size_t row_size = t->src[LINEAR_BACK_W].nb[1];
    const float *rows = (const float *)(s->w + (size_t)j0 * row_size) + i0;
    float *y[CPU_CHAIN_ROWS], *next[CPU_CHAIN_ROWS];
    const float *b[CPU_CHAIN_ROWS];
    for (int64_t i = 0; i < n; i += stripes ? STRIPE : n)
        for (int64_t c = 0; c < s->n; c += CPU_CHAIN_ROWS) {
            if (stripes && c + CPU_CHAIN_ROWS < s->n)
                fetch_rows(next, take(t, s, c + CPU_CHAIN_ROWS, i0 + i, j0, next, b),
                           cpu_min(STRIPE, n - i));
            const int n_y = take(t, s, c, i0 + i, j0, y, b);
            if (stripes)
                t->b->k.chains(y, n_y, stripes + i * depth_of(t->src[LINEAR_BACK_W].ne[1]), STRIPE,
                               b, 1, depth, cpu_min(STRIPE, n - i));
            else
                t->b->k.chains(y, n_y, rows, (int64_t)(row_size / sizeof *rows), b, 1, depth, n);
        }
}

static void back_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    const cpu_view *w = &t->src[LINEAR_BACK_W];
    const bool single = ggl_cpu_one_matrix(t);
    const cpu_lists l = single ? (cpu_lists){0} : lists_of(t);
    const int64_t tiles = t->unit.linear.n_per_matrix, n_parts = t->unit.linear.n_parts,
                  n_cols = cpu_n_rows(&t->dst);
    float *stripes = (float *)cpu_thread_scratch(t, thread),
          *row = stripes + depth_of(w->ne[1]) * width_of(t->dst.ne[0]);
    for (int64_t u = first; u < last; u++) {
        const int64_t part = u % n_parts, i0 = u / n_parts % tiles * TILE,
                      m = single ? 0 : l.active[u / n_parts / tiles],
                      n = cpu_min(TILE, t->dst.ne[0] - i0);
        columns s = {.w = w->p + (size_t)(m % w->ne[2]) * w->nb[2] +
                          (size_t)(m / w->ne[2]) * w->nb[3],
                     .order = l.order,
                     .first = single ? n_cols * part / n_parts : l.start[m]};
        s.n = (single ? n_cols * (part + 1) / n_parts : l.start[m + 1]) - s.first;
        const bool packs = t->step->src[LINEAR_BACK_W].type != GGL_F32 || s.n >= FEW;
        float *y[CPU_CHAIN_ROWS];
        const float *b[CPU_CHAIN_ROWS];
        for (int64_t c = 0, n_y; c < s.n; c += n_y) {
            n_y = take(t, &s, c, i0, 0, y, b);
            for (int64_t e = 0; e < n_y; e++)
                memset(y[e], 0, (size_t)n * sizeof *y[e]);
        }
        for (int64_t j = 0; j < w->ne[1]; j += DEPTH) {
            const int depth = (int)cpu_min(DEPTH, w->ne[1] - j);
            if (packs)
                unpack(t, s.w + (size_t)j * w->nb[1], i0, n, depth, stripes, row);
            add_rows(t, &s, i0, n, j, depth, packs ? stripes : NULL);
        }
    }
}

/* The matrix, or those of a stack that have columns. */
static void back_reads(const cpu_task *t) {
    const cpu_view *w = &t->src[LINEAR_BACK_W];
    const bool single = ggl_cpu_one_matrix(t);
    const cpu_lists l = single ? (cpu_lists){0} : lists_of(t);
    for (int64_t i = 0; i < (single ? 1 : l.n_active); i++) {
        const int64_t m = single ? 0 : l.active[i];
        t->b->base.reads(t->b->base.reads_ctx,
                         w->p + (size_t)(m % w->ne[2]) * w->nb[2] +
                             (size_t)(m / w->ne[2]) * w->nb[3],
                         w->nb[1] * (size_t)w->ne[1]);
    }
}

const cpu_op ggl_cpu_op_linear_back = {.compile = back_compile,
                                       .alone = back_alone,
                                       .begin = back_begin,
                                       .reads = back_reads,
                                       .run = back_run};

/* --- outer_sum ----------------------------------------------------------------------------- */

/* Sets of[1..3] to the numbers of vectors in each dimension. */
static void extents(const cpu_task *t, int64_t of[GGL_MAX_DIMS]) {
    const cpu_view *x = &t->src[OUTER_SUM_X], *dy = &t->src[OUTER_SUM_DY],
                   *i = &t->src[OUTER_SUM_I];
    of[0] = 1;
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        of[d] = cpu_max(x->ne[d], dy->ne[d]);
    if (i->p)
        of[GGL_BATCH_DIM] = cpu_max(of[GGL_BATCH_DIM], i->ne[GGL_BATCH_DIM]);
}

static int64_t outer_matrix(const cpu_task *t, int64_t vector) {
    const cpu_view *index = &t->src[OUTER_SUM_I];
    int64_t of[GGL_MAX_DIMS];
    extents(t, of);
    const int64_t c = vector % of[1], l = vector / of[1] / of[2];
    if (!index->p)
        return c;
    const char *row = index->p + (index->ne[3] == 1 ? 0 : (size_t)l * index->nb[3]);
    const int64_t e = ((const int32_t *)row)[index->ne[0] == 1 ? 0 : c];
    return e >= 0 && e < t->dst.ne[2] ? e : -1;
}

static bool is_several(const ggl_tensor *node) {
    return !isnan(node->num[OUTER_SUM_N]);
}

static bool outer_alone(const ggl_step *s) {
    return is_several(s->node);
}

static ggl_status outer_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_operand *x = &s->src[OUTER_SUM_X], *dy = &s->src[OUTER_SUM_DY],
                      *into = &s->src[OUTER_SUM_INTO];
    if (x->type != GGL_F32 || dy->type != GGL_F32 || (into->region >= 0 && into->type != GGL_F32))
        return ggl_fail(err, GGL_UNSUPPORTED, "outer_sum of %s and %s values",
                        ggl_type_get(x->type)->name, ggl_type_get(dy->type)->name);
    const double n = (double)ggl_cpu_compiler_n_max(c) * (double)cpu_max(x->ne[1], dy->ne[1]) *
                     (double)cpu_max(x->ne[2], dy->ne[2]);
    if (n > INT32_MAX)
        return ggl_fail(err, GGL_LIMIT, "outer_sum of %.0f vectors is not supported", n);
    if (is_several(s->node))
        s->shared_size = ggl_cpu_lists_size((int64_t)n, s->dst.ne[2]);
    s->thread_size =
        align16((size_t)(depth_of((int64_t)n) * (STRIPE + rows_of(s->dst.ne[1])))) * sizeof(float);
    return GGL_OK;
}

/* A unit is a part of a matrix: ROWS rows or a multiple, WIDE elements of each. */
static void outer_begin(cpu_task *t) {
    int64_t of[GGL_MAX_DIMS];
    extents(t, of);
    const int64_t n = ggl_extents(of, 1, GGL_MAX_DIMS, 1), wide = cpu_min(WIDE, t->dst.ne[0]),
                  n_matrices = t->dst.ne[2],
                  across = n_matrices * ((t->dst.ne[0] + WIDE - 1) / WIDE);
    int64_t rows = MOST;
    while (rows > ROWS &&
           across * (t->dst.ne[1] / rows) < 8 * t->n_threads) /* so many end together */
        rows -= ROWS;
    if (is_several(t->step->node)) {
        cpu_lists l = ggl_cpu_lists_at(t->shared, n, n_matrices);
        ggl_cpu_lists_sort(&l, n, outer_matrix, t);
    }
    t->unit.linear.n_rows = rows;
    t->n_units = across * ((t->dst.ne[1] + rows - 1) / rows);
    t->cost = (double)(cpu_min(rows, t->dst.ne[1]) * wide) * (1 + (double)n / (double)n_matrices);
}

/* A part of a matrix: rows j0 .. j0 + n_rows - 1, elements i0 .. i0 + n - 1 of each. */
typedef struct part {
    int64_t m, j0, n_rows, i0, n;
} part;

static float *part_row(const cpu_view *v, const part *p, int64_t j) {
    return (float *)(v->p + (size_t)(p->j0 + j) * v->nb[1] + (size_t)p->m * v->nb[2]) + p->i0;
}

/* Sets the part to what the sums begin with. */
static void begin_part(const cpu_task *t, const part *p) {
    const cpu_view *into = &t->src[OUTER_SUM_INTO];
    for (int64_t j = 0; j < p->n_rows; j++) {
        float *y = part_row(&t->dst, p, j);
        if (!into->p)
            memset(y, 0, (size_t)p->n * sizeof *y);
        else if (into->p != t->dst.p)
            memcpy(y, part_row(into, p, j), (size_t)p->n * sizeof *y);
    }
}

/* Adds `depth` vectors to the part: v[e] is the number of the e-th, or first + e if v is NULL. */
static void add_vectors(const cpu_task *t, const part *p, const int64_t *of, const int32_t *v,
                        int64_t first, int depth, float *scratch) {
    const cpu_view *x = &t->src[OUTER_SUM_X], *dy = &t->src[OUTER_SUM_DY];
    float *xs = scratch, *factors = scratch + depth * STRIPE, *y[CPU_CHAIN_ROWS],
          *next[CPU_CHAIN_ROWS];
    const float *b[CPU_CHAIN_ROWS];
    const int64_t step = rows_of(t->dst.ne[1]);
    for (int e = 0; e < depth; e++)
        memcpy(factors + e * step, (const float *)cpu_row(dy, of, v ? v[e] : first + e) + p->j0,
               (size_t)p->n_rows * sizeof *factors);
    for (int64_t i = 0; i < p->n; i += STRIPE) {
        const int64_t n = cpu_min(STRIPE, p->n - i);
        for (int e = 0; e < depth; e++)
            memcpy(xs + (int64_t)e * STRIPE,
                   (const float *)cpu_row(x, of, v ? v[e] : first + e) + p->i0 + i,
                   (size_t)n * sizeof *xs);
        for (int64_t j = 0; j < p->n_rows; j += CPU_CHAIN_ROWS) {
            const int n_y = (int)cpu_min(CPU_CHAIN_ROWS, p->n_rows - j),
                      n_next = (int)cpu_min(CPU_CHAIN_ROWS, p->n_rows - j - n_y);
            for (int c = 0; c < n_y; c++) {
                y[c] = part_row(&t->dst, p, j + c) + i;
                b[c] = factors + j + c;
            }
            for (int c = 0; c < n_next; c++)
                next[c] = part_row(&t->dst, p, j + n_y + c) + i;
            fetch_rows(next, n_next, n);
            t->b->k.chains(y, n_y, xs, STRIPE, b, step, depth, n);
        }
    }
}

static void outer_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    int64_t of[GGL_MAX_DIMS];
    extents(t, of);
    const int64_t n = ggl_extents(of, 1, GGL_MAX_DIMS, 1), tall = t->unit.linear.n_rows,
                  rows = (t->dst.ne[1] + tall - 1) / tall, wide = (t->dst.ne[0] + WIDE - 1) / WIDE;
    const bool several = is_several(t->step->node);
    const cpu_lists l = several ? ggl_cpu_lists_at(t->shared, n, t->dst.ne[2]) : (cpu_lists){0};
    for (int64_t u = first; u < last; u++) {
        part p = {.m = u / wide / rows, .j0 = u / wide % rows * tall, .i0 = u % wide * WIDE};
        p.n_rows = cpu_min(tall, t->dst.ne[1] - p.j0);
        p.n = cpu_min(WIDE, t->dst.ne[0] - p.i0);
        const int64_t from = several ? l.start[p.m] : 0, to = several ? l.start[p.m + 1] : n;
        begin_part(t, &p);
        for (int64_t e = from; e < to; e += DEPTH)
            add_vectors(t, &p, of, several ? l.order + e : NULL, e, (int)cpu_min(DEPTH, to - e),
                        (float *)cpu_thread_scratch(t, thread));
    }
}

const cpu_op ggl_cpu_op_outer_sum = {
    .compile = outer_compile, .alone = outer_alone, .begin = outer_begin, .run = outer_run};
