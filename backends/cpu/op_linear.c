/* linear: y[j] = dot(w row j, x) + bias[j], with one matrix for all x, one for each head or element
 * of the batch, or one that an index picks.
 *
 * A column is one vector of x with its result in y; (d1, d2, l) are its indices in y. With several
 * matrices, columns are sorted by matrix. A unit multiplies some rows of one matrix with all of the
 * matrix's columns, so that each weight is read from memory once; or with a part of them, if there would be too few units for all
 * threads. */
#include <math.h>
#include <string.h>

#include "columns.h"
#include "quant/rows16.h"

enum {
    COLUMNS = 48,   /* most columns in one call of a kernel; a multiple of 2, 3 and 6 */
    ROW_GROUP = 32, /* rows of a unit are a multiple of these, unless that leaves threads idle */
    UNIT_ROWS =
        96, /* most rows of a unit if there are many columns, unless panel_rows are more than ROW_GROUP */
    PART_COLUMNS = 96, /* least columns of a part */
    UNPACKING = 12,    /* columns whose products take as long as unpacking the rows */
    GATHERING = 16,    /* rows whose products take as long as gathering the columns for a panel */
    PANEL_UNITS = 5,   /* least units of a thread if panels of codes gather columns */
    MOST_PARTS = 4
};

/* --- columns ------------------------------------------------------------------------------ */

/* Converts the rows of src[0] to the form step->form, a cpu_columns. A unit is a row. */
static void columns_begin(cpu_task *t) {
    t->n_units = cpu_n_rows(&t->src[LINEAR_X]);
    t->cost = 3 * (double)t->src[LINEAR_X].ne[0];
}

static void columns_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t r = first; r < last; r++) {
        const float *x = (const float *)cpu_row(&t->src[LINEAR_X], t->src[LINEAR_X].ne, r);
        char *y = cpu_row(&t->dst, t->dst.ne, r);
        ggl_cpu_column_make(&t->b->k, (cpu_columns)t->step->form, y, x, t->src[LINEAR_X].ne[0]);
    }
}

const cpu_op ggl_cpu_op_columns = {.by_item = true, .begin = columns_begin, .run = columns_run};

/* --- columns by matrix ---------------------------------------------------------------------- */

/* Returns the lists of columns in t->shared. */
static cpu_lists lists_of(const cpu_task *t) {
    cpu_lists l = ggl_cpu_lists_at(t->shared, cpu_n_rows(&t->dst),
                                   ggl_extents(t->src[LINEAR_W].ne, 2, GGL_MAX_DIMS, 1));
    l.n_active = t->unit.linear.n_matrices;
    return l;
}

/* Sets the column's result to NaN. */
static void not_a_number(const cpu_task *t, int64_t column) {
    float *y = (float *)cpu_row(&t->dst, t->dst.ne, column);
    for (int64_t i = 0; i < t->dst.ne[0]; i++)
        y[i] = NAN;
}

/* Sorts the columns by matrix and sets t->unit.linear.n_matrices to the number of matrices that
 * have columns. The result of a column without a matrix becomes NaN. */
static void sort_columns(cpu_task *t) {
    cpu_lists l = lists_of(t);
    const int64_t n = cpu_n_rows(&t->dst);
    ggl_cpu_lists_sort(&l, n, ggl_cpu_matrix_of, t);
    for (int64_t c = 0; l.start[l.n_matrices] < n && c < n; c++)
        if (ggl_cpu_matrix_of(t, c) < 0)
            not_a_number(t, c);
    t->unit.linear.n_matrices = l.n_active;
}

/* A repacked matrix consists of groups of 16 rows, so every unit must begin with a group. */
_Static_assert(ROW_GROUP % CPU_GROUP == 0 && UNIT_ROWS % CPU_GROUP == 0, "rows of a unit");

/* True if the matrices are in the row-interleaved layout (quant/rows16.h). */
static bool in_groups(const cpu_task *t) {
    return t->unit.linear.in_groups;
}

/* Returns the offset in bytes of row j in its matrix. */
static size_t row_offset(const cpu_task *t, int64_t j) {
    const ggl_operand *w = &t->step->src[LINEAR_W];
    return in_groups(t) ? ggl_cpu_rows16_size(w->type, j, w->ne[0]) : (size_t)j * w->nb[1];
}

/* --- compile ------------------------------------------------------------------------------- */

/* Returns the type with which the product reads a weight. */
static ggl_type type_read(const ggl_operand *w) {
    return w->repacked && w->type == GGL_F16 ? GGL_BF16 : w->type;
}

/* Sets type and strides of a weight to those of its repacked copy. f16 has become rows of bf16,
 * which have the same size and are not interleaved. */
static void set_repacked(const cpu_backend *b, ggl_operand *w) {
    w->nb[2] = ggl_cpu_repacked_matrix_size(b, w->type, w->ne[1], w->ne[0]);
    w->nb[3] = w->nb[2] * (size_t)w->ne[2];
    if (type_read(w) != w->type) {
        w->type = type_read(w);
        w->repacked = false;
    }
}

/* x in the form that the weight's type needs. */
static ggl_form linear_form(const cpu_backend *b, const ggl_step *s) {
    const ggl_operand *x = &s->src[LINEAR_X];
    const cpu_columns form = b->k.product[type_read(&s->src[LINEAR_W])].columns;
    if (x->type != GGL_F32 || form == CPU_COLUMNS_F32)
        return (ggl_form){0};
    return (ggl_form){
        .kind = (int)form, .with = -1, .row_size = ggl_cpu_column_size(form, x->ne[0])};
}

/* Columns are sorted by matrix in the shared scratch. */
static bool linear_alone(const ggl_step *s) {
    return s->n_src > 3 || s->src[LINEAR_W].ne[2] > 1 || s->src[LINEAR_W].ne[3] != 1;
}

/* Checks the types, and sets the sizes of scratch. */
static ggl_status linear_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_operand *x = &s->src[LINEAR_X], *w = &s->src[LINEAR_W], *bias = &s->src[LINEAR_BIAS];
    const cpu_backend *b = ggl_cpu_compiler_backend(c);
    if (w->repacked)
        set_repacked(b, &s->src[LINEAR_W]);
    const cpu_product *p = &b->k.product[w->type];
    if (!p->rows || (!x->form && x->type != GGL_F32) ||
        (bias->region >= 0 && bias->type != GGL_F32))
        return ggl_fail(err, GGL_UNSUPPORTED, "linear of %s with a matrix of %s%s",
                        ggl_type_get(x->type)->name, ggl_type_get(w->type)->name,
                        bias->region >= 0 && bias->type != GGL_F32 ? " and a bias that is not f32"
                                                                   : "");
    if (w->type == GGL_F32 && w->nb[0] != 4)
        return ggl_fail(err, GGL_UNSUPPORTED, "linear needs a matrix with dense rows");
    s->linear.batch_of_w = ggl_is_batched(s->node->src[LINEAR_W]);
    int64_t columns = ggl_extents(s->dst.ne, 1, GGL_MAX_DIMS, ggl_cpu_compiler_n_max(c));
    int64_t matrices = ggl_extents(w->ne, 2, GGL_MAX_DIMS, ggl_cpu_compiler_n_max(c));
    if (columns > INT32_MAX || matrices > INT32_MAX)
        return ggl_fail(err, GGL_LIMIT, "linear with %lld columns is not supported",
                        (long long)columns);
    if (matrices > 1 || s->n_src > 3) /* linear_alone() */
        s->shared_size = ggl_cpu_lists_size(columns, matrices);
    if (p->pack && w->ne[0] % p->panel_unit == 0)
        s->thread_size = p->panel_size(w->ne[0]);
    return GGL_OK;
}

/* --- run ----------------------------------------------------------------------------------- */

static int64_t round_up(int64_t x, int64_t to) {
    return (x + to - 1) / to * to;
}

/* True if threads would be idle for more than a sixteenth of the time if each took one of n equal units after another. */
static bool is_uneven(int64_t n, int n_threads) {
    const int64_t rounds = (n + n_threads - 1) / n_threads;
    return 16 * (rounds * n_threads - n) > rounds * n_threads;
}

/* How a product is divided into units: rows of a unit, and parts of the columns. */
typedef struct division {
    int64_t rows, parts;
} division;

/* What it costs to divide a product into units of work. */
typedef struct unit_costs {
    int gathering; /* rows whose products take as long as what a panel does once for each column of a unit */
    int least;   /* units that a thread has at least, if there are rows enough */
    double wait; /* units for which a thread waits at the end, as threads do not end at once */
} unit_costs;

static int64_t units_of(division d, int64_t n_rows) {
    return (n_rows + d.rows - 1) / d.rows * d.parts;
}

/* Returns the time that a product of n_rows rows by n_cols columns takes. Each part unpacks the rows again. */
static double time_of(division d, int64_t n_rows, int64_t n_cols, unit_costs c, int n_threads) {
    const int64_t rounds = (units_of(d, n_rows) + n_threads - 1) / n_threads;
    return ((double)rounds + (n_threads > 1 ? c.wait : 0)) * (double)(d.rows + c.gathering) *
           ((double)(n_cols / d.parts) + UNPACKING);
}

/* Returns the division that takes the least time, of those with rows[0], 2 * rows[0] .. rows[1] rows. More parts must save a
 * thirty-second of the time. */
static division best_division(const int64_t rows[2], int64_t n_rows, int64_t n_cols,
                              int64_t most_parts, unit_costs c, int n_threads) {
    division best = {rows[0], 1};
    double least = time_of(best, n_rows, n_cols, c, n_threads);
    for (int64_t parts = 1; parts == 1 || (parts <= most_parts && parts * PART_COLUMNS <= n_cols);
         parts++)
        for (division d = {rows[0], parts}; d.rows <= rows[1]; d.rows += rows[0]) {
            const double time = time_of(d, n_rows, n_cols, c, n_threads);
            if (d.rows > rows[0] && units_of(d, n_rows) < c.least * n_threads)
                break;
            if (parts > best.parts ? time < least - least / 32 : time <= least) {
                best = d;
                least = time;
            }
        }
    return best;
}

/* Lets the product read the weights as they are in the file: the repacked copy is not made yet. */
static void use_original(cpu_task *t) {
    const ggl_loc at = t->step->linear.original;
    cpu_view *w = &t->src[LINEAR_W];
    w->p = t->region[at.region]->data + at.offset;
    w->nb[2] = w->nb[1] * (size_t)w->ne[1];
    w->nb[3] = w->nb[2] * (size_t)w->ne[2];
}

/* True if the only reader takes no row of the product. */
static bool is_untaken(const cpu_task *t) {
    const ggl_operand *o = &t->step->linear.taken;
    if (!t->step->linear.may_skip)
        return false;
    const char *at = t->region[o->region]->data + o->offset;
    const int64_t n = o->ne[GGL_BATCH_DIM] == GGL_N ? t->n : 1;
    for (int64_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, at + (size_t)i * o->nb[GGL_BATCH_DIM], sizeof x);
        if ((x != 0) != t->step->linear.if_not)
            return false;
    }
    return true;
}

/* Divides the product into units, and sets t->unit.linear. */
static void linear_begin(cpu_task *t) {
    if (is_untaken(t)) {
        t->n_units = 0;
        return;
    }
    int64_t n_out = t->dst.ne[0], n_cols = cpu_n_rows(&t->dst);
    const bool *waits = t->step->linear.waits;
    t->unit.linear.in_groups = t->step->src[LINEAR_W].repacked && !(waits && *waits);
    if (waits && *waits)
        use_original(t);
    t->unit.linear.n_matrices = 1;
    if (!ggl_cpu_one_matrix(t))
        sort_columns(t);
    const int64_t n_active = cpu_max(t->unit.linear.n_matrices, 1), n_each = n_cols / n_active;
    const bool few = n_each < 4;
    /* 8 units for each thread, so that all end at about the same time, but none of too few rows */
    int64_t rows = round_up(cpu_max(n_out * n_active / (8 * t->n_threads), 1), ROW_GROUP);
    rows = cpu_min(rows, few ? 512 : UNIT_ROWS);
    division d = {rows, 1};
    const cpu_product *p = &t->b->k.product[t->step->src[LINEAR_W].type];
    if (few) {
        if (is_uneven((n_out + rows - 1) / rows * n_active, t->n_threads))
            d.rows = round_up(rows / 2, CPU_GROUP);
    } else {
        const bool tall = n_each >= p->min_cols && p->panel_rows > ROW_GROUP;
        const bool codes = p->columns == CPU_COLUMNS_Q8;
        const int64_t n = n_out * n_active, parts = ggl_cpu_one_matrix(t) ? MOST_PARTS : 1;
        int64_t range[] = {tall ? ROW_GROUP : rows, tall ? p->panel_rows : rows};
        unit_costs c = {.gathering = tall ? GATHERING : 0, .wait = tall ? 0.5 : 0};
        /* first the rows, then the parts: unpacking codes once more is not worth larger units */
        if (tall && codes) {
            c = (unit_costs){.gathering = GATHERING, .least = PANEL_UNITS};
            range[0] = range[1] = best_division(range, n, n_each, 1, c, t->n_threads).rows;
            c = (unit_costs){0};
        }
        d = best_division(range, n, n_each, parts, c, t->n_threads);
    }
    const int64_t n_per_matrix = (n_out + d.rows - 1) / d.rows, n_parts = d.parts;
    t->unit.linear.n_rows = d.rows;
    t->unit.linear.n_parts = n_parts;
    t->unit.linear.n_per_matrix = n_per_matrix;
    t->n_units = t->unit.linear.n_matrices * n_per_matrix * n_parts;
    t->cost = (double)(cpu_min(d.rows, n_out) * t->src[LINEAR_W].ne[0]) * (double)n_cols /
              (double)(n_active * n_parts);
}

/* Rows j0 .. j1-1 of a matrix, to be multiplied with some columns. */
typedef struct span {
    const char *w; /* the matrix */
    int64_t j0, j1, first_col, n_cols;
    const int32_t *order; /* NULL: columns first_col .. first_col + n_cols - 1 */
} span;

/* Returns the number of the span's i-th column. */
static int64_t column_index(const span *s, int64_t i) {
    return s->order ? s->order[i] : s->first_col + i;
}

/* Sets x[] to up to COLUMNS columns of the span from the i-th on, and y[] to element j of their
 * results; returns how many there are. */
static int take_columns(const cpu_task *t, const span *s, int64_t i, int64_t j, float **y,
                        const void **x) {
    const cpu_view *from = &t->src[LINEAR_X], *to = &t->dst;
    const size_t x_step = cpu_row_step(from, to->ne), y_step = cpu_row_step(to, to->ne);
    int n = (int)cpu_min(COLUMNS, s->n_cols - i);
    for (int e = 0; e < n; e++) { /* without the divisions of cpu_row(), if possible */
        int64_t c = column_index(s, i + e);
        y[e] = (float *)(y_step ? to->p + (size_t)c * y_step : cpu_row(to, to->ne, c)) + j;
        x[e] = x_step ? from->p + (size_t)c * x_step : cpu_row(from, to->ne, c);
    }
    return n;
}

/* Multiplies the span straight from the weights. Its rows stay in the core's cache while all columns pass. */
static void by_rows(const cpu_task *t, const cpu_product *p, const span *s) {
    const int64_t k = t->src[LINEAR_W].ne[0];
    const char *w = s->w + row_offset(t, s->j0);
    for (int64_t i = 0; i < s->n_cols; i += COLUMNS) {
        float *y[COLUMNS];
        const void *x[COLUMNS];
        int n = take_columns(t, s, i, s->j0, y, x);
        if (in_groups(t))
            p->rows16(y, x, n, w, s->j1 - s->j0, k, p->reading);
        else
            p->rows(y, x, n, w, t->src[LINEAR_W].nb[1], s->j1 - s->j0, k);
    }
}

/* Unpacks the span's rows, panel by panel, and multiplies each panel with all columns; for many
 * columns. panel: scratch of p->panel_size() bytes. */
static void by_panels(const cpu_task *t, const cpu_product *p, const span *s, void *panel) {
    size_t row_size = t->src[LINEAR_W].nb[1];
    for (int64_t j = s->j0; j < s->j1; j += p->panel_rows) {
        int n_rows = (int)cpu_min(p->panel_rows, s->j1 - j);
        if (in_groups(t))
            p->pack16(panel, s->w + row_offset(t, j), n_rows, t->src[LINEAR_W].ne[0]);
        else
            p->pack(panel, s->w + row_offset(t, j), row_size, n_rows, t->src[LINEAR_W].ne[0]);
        for (int64_t i = 0; i < s->n_cols; i += COLUMNS) {
            float *y[COLUMNS];
            const void *x[COLUMNS];
            int n = take_columns(t, s, i, j, y, x);
            p->tile(y, x, n, panel, n_rows, t->src[LINEAR_W].ne[0]);
        }
    }
}

/* Adds the bias, if there is one, to the span's results. */
static void add_bias(const cpu_task *t, const span *s) {
    const cpu_view *bias = &t->src[LINEAR_BIAS];
    for (int64_t i = 0; bias->p && i < s->n_cols; i++) {
        int64_t c = column_index(s, i);
        float *y = (float *)cpu_row(&t->dst, t->dst.ne, c) + s->j0;
        const float *v = (const float *)cpu_row(bias, t->dst.ne, c);
        bool one = bias->ne[0] == 1;
        t->b->k.binary[CPU_ADD](y, y, 1, v + (one ? 0 : s->j0), !one, s->j1 - s->j0);
    }
}

/* Returns what unit u multiplies. single: all columns have one matrix. */
static span span_of(const cpu_task *t, const cpu_lists *l, bool single, int64_t u) {
    const cpu_view *w = &t->src[LINEAR_W];
    const int64_t n_parts = t->unit.linear.n_parts, part = u % n_parts, block = u / n_parts,
                  n_matrices = t->unit.linear.n_matrices,
                  n_per_matrix = t->unit.linear.n_per_matrix, n_cols = cpu_n_rows(&t->dst);
    const bool rows_first = cpu_rows_first(t->b);
    const int64_t i = rows_first ? block % n_matrices : block / n_per_matrix,
                  j = (rows_first ? block / n_matrices : block % n_per_matrix) *
                      t->unit.linear.n_rows,
                  m = single ? 0 : l->active[i];
    span s = {.w = w->p + (size_t)(m % w->ne[2]) * w->nb[2] + (size_t)(m / w->ne[2]) * w->nb[3],
              .j0 = j,
              .j1 = cpu_min(j + t->unit.linear.n_rows, t->dst.ne[0])};
    if (single) {
        s.first_col = n_cols * part / n_parts;
        s.n_cols = n_cols * (part + 1) / n_parts - s.first_col;
    } else {
        s.order = l->order + l->start[m];
        s.n_cols = l->start[m + 1] - l->start[m];
    }
    return s;
}

/* Runs units: each multiplies some rows of one matrix with all of its columns, or a part of them, and adds the
 * bias. */
static void linear_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    const cpu_product *p = &t->b->k.product[t->step->src[LINEAR_W].type];
    const bool single = ggl_cpu_one_matrix(t);
    const cpu_lists l = single ? (cpu_lists){0} : lists_of(t);
    for (int64_t u = first; u < last; u++) {
        const span s = span_of(t, &l, single, u);
        if (t->step->thread_size > 0 && s.n_cols >= p->min_cols)
            by_panels(t, p, &s, cpu_thread_scratch(t, thread));
        else
            by_rows(t, p, &s);
        add_bias(t, &s);
    }
}

/* The matrix, or those of a stack that have columns. */
static void linear_reads(const cpu_task *t) {
    if (t->n_units == 0)
        return;
    const cpu_view *w = &t->src[LINEAR_W];
    const ggl_backend *b = &t->b->base;
    const size_t size = in_groups(t) ? w->nb[2] : w->nb[1] * (size_t)w->ne[1];
    const bool single = ggl_cpu_one_matrix(t);
    const cpu_lists l = single ? (cpu_lists){0} : lists_of(t);
    for (int64_t i = 0; i < (single ? 1 : l.n_active); i++) {
        const int64_t m = single ? 0 : l.active[i];
        b->reads(b->reads_ctx,
                 w->p + (size_t)(m % w->ne[2]) * w->nb[2] + (size_t)(m / w->ne[2]) * w->nb[3],
                 size);
    }
}

const cpu_op ggl_cpu_op_linear = {.form = linear_form,
                                  .compile = linear_compile,
                                  .alone = linear_alone,
                                  .begin = linear_begin,
                                  .reads = linear_reads,
                                  .run = linear_run};
