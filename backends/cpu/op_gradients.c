/* The products of gradients: linear_back, x = W^T dy, and outer_sum, the sum of x dy^T over the batch. Each number is one chain
 * of fused multiply-adds, in the order of the terms, so lanes are neighbouring elements of a row, and terms may be added in any
 * number of pieces: the kernel `chains` goes on from what is there. Both pack what the lanes read to stripes of STRIPE
 * elements, which stay in the core's second cache while all rows pass: the kernel needs a load for six products. What it adds to is
 * fetched one call ahead.
 *
 * In bf16, the kernel is `chain_pairs`: what is packed are pairs, each the numbers of two terms that follow each other, in the room of a float. So a
 * step of the kernel, and of all that is packed for it, are two terms then. */
#include <math.h>
#include <string.h>

#include "columns.h"
#include "ggl/internal/types.h"

enum {
    STRIPE = 64, /* elements that the kernel computes side by side; a multiple of all vectors */
    DEPTH = 256, /* steps that are packed together: a stripe of them is 64 KB */
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

/* Returns how many steps of the kernel n terms are. */
static int64_t steps_of(int64_t n, bool bf16) {
    return bf16 ? (n + 1) / 2 : n;
}

/* Returns how many of them are packed together. */
static int64_t depth_of(int64_t n, bool bf16) {
    return cpu_min(DEPTH, steps_of(n, bf16));
}

/* Adds `depth` steps, as chains() or chain_pairs() does. */
static void add_steps(const cpu_kernels *k, bool bf16, float *const *y, int n_y, const void *a,
                      int64_t a_step, const void *const *b, int64_t b_step, int depth, int64_t n) {
    const uint32_t *pairs[CPU_CHAIN_ROWS];
    const float *factors[CPU_CHAIN_ROWS];
    for (int c = 0; c < n_y; c++) {
        pairs[c] = b[c];
        factors[c] = b[c];
    }
    if (bf16)
        k->chain_pairs(y, n_y, a, a_step, pairs, b_step, depth, n);
    else
        k->chains(y, n_y, a, a_step, factors, b_step, depth, n);
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

static bool back_in_bf16(const ggl_step *s) {
    return s->node->num[LINEAR_BACK_BF16] != 0;
}

/* dy as pairs. */
static ggl_form back_form(const cpu_backend *b, const ggl_step *s) {
    const ggl_operand *dy = &s->src[LINEAR_BACK_DY];
    (void)b;
    if (dy->type != GGL_F32 || !back_in_bf16(s))
        return (ggl_form){0};
    return (ggl_form){.kind = CPU_COLUMNS_BF16_CHAIN,
                      .with = -1,
                      .row_size = ggl_cpu_column_size(CPU_COLUMNS_BF16_CHAIN, dy->ne[0])};
}

/* Columns are sorted by matrix in the shared scratch. */
static bool back_alone(const ggl_step *s) {
    return s->n_src > LINEAR_INDEX || s->src[LINEAR_W].ne[2] > 1 || s->src[LINEAR_W].ne[3] != 1;
}

static ggl_status back_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_operand *dy = &s->src[LINEAR_BACK_DY], *w = &s->src[LINEAR_BACK_W];
    const ggl_type_info *type = ggl_type_get(w->type);
    if ((!dy->form && dy->type != GGL_F32) || !type || !type->to_float || w->type == GGL_I32)
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
    s->linear.bf16 = s->node->num[LINEAR_BACK_BF16] != 0;
    s->thread_size =
        (size_t)((depth_of(w->ne[1], s->linear.bf16) + 2) * width_of(s->dst.ne[0])) * sizeof(float);
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

/* Sets y[] and b[] to up to CPU_CHAIN_ROWS columns from the i-th on: element i0 of the results, and step j0 of dy. Returns
 * how many there are. */
static int take(const cpu_task *t, const columns *s, int64_t i, int64_t i0, int64_t j0, float **y,
                const void **b) {
    const int n = (int)cpu_min(CPU_CHAIN_ROWS, s->n - i);
    for (int e = 0; e < n; e++) {
        const int64_t c = s->order ? s->order[s->first + i + e] : s->first + i + e;
        y[e] = (float *)cpu_row(&t->dst, t->dst.ne, c) + i0;
        b[e] = (const float *)cpu_row(&t->src[LINEAR_BACK_DY], t->dst.ne, c) + j0;
    }
    return n;
}

/* Some elements of rows of a matrix. */
typedef struct some_rows {
    const char *at; /* of the first row, or, if rows have scales of their own, its beginning */
    int64_t first, of_row; /* the first element after `at`, and the elements of whole rows */
    size_t row_size, size;
    ggl_type type;
    int64_t n, n_rows;
    int64_t most; /* steps of a stripe */
    float *scratch;
} some_rows;

/* Returns row j, as f32; k: 0 or 1, the part of the scratch that it may use. */
static const float *row_at(const cpu_task *t, const some_rows *r, int64_t j, int k) {
    const char *at = r->at + (size_t)j * r->row_size;
    float *row = r->scratch + k * r->n;
    for (size_t i = 0; i < r->size && j + AHEAD < r->n_rows; i += 64)
        __builtin_prefetch(at + AHEAD * r->row_size + i);
    if (r->type == GGL_F32)
        return (const float *)at;
    if (r->first > 0)
        ggl_to_float(ggl_type_get(r->type), at, r->of_row, r->first, r->n, row);
    else
        (t->b->k.to_f32[r->type] ? t->b->k.to_f32[r->type]
                                 : ggl_type_get(r->type)->to_float)(at, row, r->n);
    return row;
}

static void unpack_floats(const cpu_task *t, const some_rows *r, float *to) {
    for (int64_t e = 0; e < r->n_rows; e++) {
        const float *x = row_at(t, r, e, 0);
        for (int64_t i = 0; i < r->n; i += STRIPE)
            memcpy(to + i * r->most + e * STRIPE, x + i,
                   (size_t)cpu_min(STRIPE, r->n - i) * sizeof *to);
    }
}

static void unpack_pairs(const cpu_task *t, const some_rows *r, uint32_t *to) {
    const cpu_kernels *k = &t->b->k;
    for (int64_t e = 0; e < r->n_rows; e += 2, to += STRIPE) {
        const bool both = e + 1 < r->n_rows;
        if (r->type == GGL_BF16) {
            const uint16_t *x = (const uint16_t *)(const void *)(r->at + (size_t)e * r->row_size);
            for (size_t i = 0; i < r->size && e + 1 + AHEAD < r->n_rows; i += 64) {
                __builtin_prefetch((const char *)x + AHEAD * r->row_size + i);
                __builtin_prefetch((const char *)x + (AHEAD + 1) * r->row_size + i);
            }
            for (int64_t i = 0; i < r->n; i += STRIPE)
                k->pair_bf16_rows(to + i * r->most, x + i,
                                  both ? x + r->row_size / sizeof *x + i : NULL,
                                  cpu_min(STRIPE, r->n - i));
            continue;
        }
        const float *x = row_at(t, r, e, 0), *y = both ? row_at(t, r, e + 1, 1) : NULL;
        for (int64_t i = 0; i < r->n; i += STRIPE)
            k->pair_rows(to + i * r->most, x + i, y ? y + i : NULL, cpu_min(STRIPE, r->n - i));
    }
}

/* Unpacks elements i0 .. i0 + n - 1 of n_rows rows to stripes; scratch: 2 n numbers. */
static void unpack(const cpu_task *t, const char *w, int64_t i0, int64_t n, int64_t n_rows,
                   void *to, float *scratch) {
    const ggl_type type = t->step->src[LINEAR_BACK_W].type;
    const ggl_type_info *info = ggl_type_get(type);
    const cpu_view *m = &t->src[LINEAR_BACK_W];
    const bool whole = info->row_meta > 0;
    const some_rows r = {.at = w + (whole ? 0 : (size_t)(i0 / info->block) * info->size),
                         .first = whole ? i0 : 0,
                         .of_row = m->ne[0],
                         .row_size = m->nb[1],
                         .size = (size_t)(n / info->block) * info->size,
                         .type = type,
                         .n = n,
                         .n_rows = n_rows,
                         .most = depth_of(m->ne[1], t->step->linear.bf16),
                         .scratch = scratch};
    if (t->step->linear.bf16)
        unpack_pairs(t, &r, to);
    else
        unpack_floats(t, &r, to);
}

/* Adds `depth` steps from j0 on to elements i0 .. i0 + n - 1 of the columns' results. stripes: as unpack()
 * writes them; NULL: f32 rows, which are read where they are. */
static void add_rows(const cpu_task *t, const columns *s, int64_t i0, int64_t n, int64_t j0,
                     int depth, const float *stripes) {
    const size_t row_size = t->src[LINEAR_BACK_W].nb[1];
    const bool bf16 = t->step->linear.bf16;
    const int64_t most = depth_of(t->src[LINEAR_BACK_W].ne[1], bf16);
    const float *in_place = (const float *)(s->w + (size_t)j0 * row_size) + i0;
    float *y[CPU_CHAIN_ROWS], *next[CPU_CHAIN_ROWS];
    const void *b[CPU_CHAIN_ROWS];
    for (int64_t i = 0; i < n; i += stripes ? STRIPE : n)
        for (int64_t c = 0; c < s->n; c += CPU_CHAIN_ROWS) {
            if (stripes && c + CPU_CHAIN_ROWS < s->n)
                fetch_rows(next, take(t, s, c + CPU_CHAIN_ROWS, i0 + i, j0, next, b),
                           cpu_min(STRIPE, n - i));
            const int n_y = take(t, s, c, i0 + i, j0, y, b);
            if (stripes)
                add_steps(&t->b->k, bf16, y, n_y, stripes + i * most, STRIPE, b, 1, depth,
                          cpu_min(STRIPE, n - i));
            else
                add_steps(&t->b->k, false, y, n_y, in_place, (int64_t)(row_size / sizeof *in_place),
                          b, 1, depth, n);
        }
}

static void back_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    const cpu_view *w = &t->src[LINEAR_BACK_W];
    const bool single = ggl_cpu_one_matrix(t);
    const cpu_lists l = single ? (cpu_lists){0} : lists_of(t);
    const int64_t tiles = t->unit.linear.n_per_matrix, n_parts = t->unit.linear.n_parts,
                  n_cols = cpu_n_rows(&t->dst);
    const bool bf16 = t->step->linear.bf16;
    const int64_t per_step = bf16 ? 2 : 1, n_steps = steps_of(w->ne[1], bf16);
    float *stripes = (float *)cpu_thread_scratch(t, thread),
          *scratch = stripes + depth_of(w->ne[1], bf16) * width_of(t->dst.ne[0]);
    for (int64_t u = first; u < last; u++) {
        const int64_t part = u % n_parts, i0 = u / n_parts % tiles * TILE,
                      m = single ? 0 : l.active[u / n_parts / tiles],
                      n = cpu_min(TILE, t->dst.ne[0] - i0);
        columns s = {.w = w->p + (size_t)(m % w->ne[2]) * w->nb[2] +
                          (size_t)(m / w->ne[2]) * w->nb[3],
                     .order = l.order,
                     .first = single ? n_cols * part / n_parts : l.start[m]};
        s.n = (single ? n_cols * (part + 1) / n_parts : l.start[m + 1]) - s.first;
        const bool packs = bf16 || t->step->src[LINEAR_BACK_W].type != GGL_F32 || s.n >= FEW;
        float *y[CPU_CHAIN_ROWS];
        const void *b[CPU_CHAIN_ROWS];
        for (int64_t c = 0, n_y; c < s.n; c += n_y) {
            n_y = take(t, &s, c, i0, 0, y, b);
            for (int64_t e = 0; e < n_y; e++)
                memset(y[e], 0, (size_t)n * sizeof *y[e]);
        }
        for (int64_t j = 0; j < n_steps; j += DEPTH) {
            const int depth = (int)cpu_min(DEPTH, n_steps - j);
            const int64_t first_row = j * per_step;
            if (packs)
                unpack(t, s.w + (size_t)first_row * w->nb[1], i0, n,
                       cpu_min(depth * per_step, w->ne[1] - first_row), stripes, scratch);
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

const cpu_op ggl_cpu_op_linear_back = {.form = back_form,
                                       .compile = back_compile,
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
    s->linear.bf16 = s->node->num[OUTER_SUM_BF16] != 0;
    s->thread_size =
        align16((size_t)(depth_of((int64_t)n, s->linear.bf16) * (STRIPE + rows_of(s->dst.ne[1])))) *
        sizeof(float);
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

/* Vectors of the batch that are added to the same matrix. */
typedef struct vectors {
    const int64_t *of;    /* the numbers of vectors in each dimension */
    const int32_t *order; /* which they are; NULL: `first` and on */
    int64_t first, n;
} vectors;

/* Returns vector e of x or dy, from element i on. */
static const float *vector_at(const cpu_view *x, const vectors *v, int64_t e, int64_t i) {
    return (const float *)cpu_row(x, v->of, v->order ? v->order[e] : v->first + e) + i;
}

/* Packs elements i .. i + n - 1 of the vectors, `step` numbers from one step to the next. */
static void pack(const cpu_task *t, const cpu_view *x, const vectors *v, int64_t i, int64_t n,
                 float *to, int64_t step) {
    if (!t->step->linear.bf16) {
        for (int64_t e = 0; e < v->n; e++)
            memcpy(to + e * step, vector_at(x, v, e, i), (size_t)n * sizeof *to);
        return;
    }
    uint32_t *pairs = (uint32_t *)(void *)to;
    for (int64_t e = 0; e < v->n; e += 2)
        t->b->k.pair_rows(pairs + e / 2 * step, vector_at(x, v, e, i),
                          e + 1 < v->n ? vector_at(x, v, e + 1, i) : NULL, n);
}

/* Adds the vectors, as many as are packed together, to the part. */
static void add_vectors(const cpu_task *t, const part *p, const vectors *v, float *scratch) {
    const bool bf16 = t->step->linear.bf16;
    const int depth = (int)steps_of(v->n, bf16);
    float *xs = scratch, *factors = scratch + depth * STRIPE, *y[CPU_CHAIN_ROWS],
          *next[CPU_CHAIN_ROWS];
    const void *b[CPU_CHAIN_ROWS];
    const int64_t step = rows_of(t->dst.ne[1]);
    pack(t, &t->src[OUTER_SUM_DY], v, p->j0, p->n_rows, factors, step);
    for (int64_t i = 0; i < p->n; i += STRIPE) {
        const int64_t n = cpu_min(STRIPE, p->n - i);
        pack(t, &t->src[OUTER_SUM_X], v, p->i0 + i, n, xs, STRIPE);
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
            add_steps(&t->b->k, bf16, y, n_y, xs, STRIPE, b, step, depth, n);
        }
    }
}

static void outer_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    int64_t of[GGL_MAX_DIMS];
    extents(t, of);
    const int64_t n = ggl_extents(of, 1, GGL_MAX_DIMS, 1), tall = t->unit.linear.n_rows,
                  rows = (t->dst.ne[1] + tall - 1) / tall, wide = (t->dst.ne[0] + WIDE - 1) / WIDE;
    const bool several = is_several(t->step->node);
    const int64_t most = t->step->linear.bf16 ? 2 * DEPTH : DEPTH;
    const cpu_lists l = several ? ggl_cpu_lists_at(t->shared, n, t->dst.ne[2]) : (cpu_lists){0};
    for (int64_t u = first; u < last; u++) {
        part p = {.m = u / wide / rows, .j0 = u / wide % rows * tall, .i0 = u % wide * WIDE};
        p.n_rows = cpu_min(tall, t->dst.ne[1] - p.j0);
        p.n = cpu_min(WIDE, t->dst.ne[0] - p.i0);
        const int64_t from = several ? l.start[p.m] : 0, to = several ? l.start[p.m + 1] : n;
        begin_part(t, &p);
        for (int64_t e = from; e < to; e += most) {
            const vectors v = {.of = of,
                               .order = several ? l.order + e : NULL,
                               .first = e,
                               .n = cpu_min(most, to - e)};
            add_vectors(t, &p, &v, (float *)cpu_thread_scratch(t, thread));
        }
    }
}

const cpu_op ggl_cpu_op_outer_sum = {
    .compile = outer_compile, .alone = outer_alone, .begin = outer_begin, .run = outer_run};
