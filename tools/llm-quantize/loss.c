#include "loss.h"

#include <math.h>

#include "common/work_share.h"
#include "ggl/alloc.h"
#include "quant/encode.h"

enum { SAMPLE = 1 << 18, ROWS = 16 }; /* elements to measure; rows of a piece of work */

typedef struct sums {
    double power, error; /* weighted squares of the weights, and of their errors */
} sums;

typedef struct encoding {
    const loss_matrix *m;
    const ggl_type_info *type;
    int64_t n_row, step; /* rows 0, step, 2 * step, .. */
    float *x, *y;        /* [n_threads][n_col]: a row; the same row encoded and decoded */
    uint8_t *code;       /* [n_threads][code_size] */
    size_t code_size, row_size;
    sums *sum;   /* [n_row]; or NULL */
    uint8_t *to; /* decoded rows go there; or NULL */
} encoding;

ggl_status loss_matrix_init(loss_matrix *m, const ggl_gguf_tensor *t, const imatrix_entry *entry,
                            bool search, ggl_error *err) {
    *m = (loss_matrix){.tensor = t,
                       .from = ggl_type_get((int)t->type),
                       .n_col = t->ne[0],
                       .n_row = 1,
                       .search = search};
    for (int d = 1; d < t->n_dims; d++)
        m->n_row *= t->ne[d];
    m->n_row_mat = t->n_dims > 1 && t->ne[1] > 0 ? t->ne[1] : 1;
    const int64_t n_mat = m->n_row / m->n_row_mat;
    return entry ? importance_read(entry, m->n_col, 0, n_mat, &m->of, err) : GGL_OK;
}

void loss_matrix_fini(loss_matrix *m) {
    llm_quant_importance_fini(&m->of);
}

/* Returns the expected error of a row's products, divided by the error if the elements' errors were
 * independent. */
static double left_of_errors(const quant_importance *of, const float *x, const float *y,
                             int64_t n) {
    double sum[GGL_MAX_DIRECTIONS] = {0}, all = 0, apart = 0;
    for (int64_t k = 0; k < n; k++) {
        const double e = (double)y[k] - (double)x[k];
        for (int d = 0; d < of->n_dir; d++)
            sum[d] += e * (double)of->dir[k * of->n_dir + d];
        apart += e * e * (double)of->power[k];
        all += e * e * (double)of->own[k];
    }
    for (int d = 0; d < of->n_dir; d++)
        all += sum[d] * sum[d];
    return apart > 0 ? all / apart : 1;
}

/* Encodes and decodes a row; adds up its errors, stores the decoded row, or both. */
static void encode_row(const encoding *e, int64_t i, int thread) {
    const loss_matrix *m = e->m;
    const int64_t n = m->n_col, row = i * e->step;
    float *x = e->x + (size_t)thread * (size_t)n, *y = e->y + (size_t)thread * (size_t)n;
    uint8_t *code = e->code + (size_t)thread * e->code_size;
    const float *h = m->of.mean ? m->of.mean + row / m->n_row_mat * n : NULL;
    const ggl_importance of = {h, m->of.dir, m->of.own, m->of.power, n, m->of.n_dir};
    m->from->to_float((const uint8_t *)m->tensor->data + (size_t)row * e->row_size, x, n);
    llm_quant_from_float(e->type, x, h ? &of : NULL, m->search, code, n);
    e->type->to_float(code, y, n);
    if (e->to)
        m->from->from_float(y, e->to + (size_t)row * e->row_size, n);
    if (!e->sum)
        return;
    sums s = {0, 0};
    for (int64_t k = 0; k < n; k++) {
        const double w = h ? (double)h[k] : 1, d = (double)x[k] - (double)y[k];
        s.power += w * (double)x[k] * (double)x[k];
        s.error += w * d * d;
    }
    if (m->of.dir && isfinite(s.error))
        s.error *= left_of_errors(&m->of, x, y, n);
    e->sum[i] = s;
}

static void encode_rows(void *ctx, size_t piece, int thread) {
    const encoding *e = ctx;
    const int64_t first = (int64_t)piece * ROWS;
    for (int64_t i = first; i < first + ROWS && i < e->n_row; i++)
        encode_row(e, i, thread);
}

static ggl_status encode_all(encoding *e, int n_threads, ggl_error *err) {
    const size_t n = (size_t)e->m->n_col;
    ggl_status st = GGL_OK;
    e->row_size = ggl_row_size(e->m->from->type, e->m->n_col);
    e->code_size = ggl_row_size(e->type->type, e->m->n_col);
    e->x = ggl_calloc((size_t)n_threads * n, sizeof *e->x);
    e->y = ggl_calloc((size_t)n_threads * n, sizeof *e->y);
    e->code = ggl_calloc((size_t)n_threads, e->code_size);
    if (e->x && e->y && e->code)
        llm_work_share(n_threads, (size_t)((e->n_row + ROWS - 1) / ROWS), encode_rows, e);
    else
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_free(e->x);
    ggl_free(e->y);
    ggl_free(e->code);
    return st;
}

ggl_status loss_error(const loss_matrix *m, const ggl_type_info *type, int n_threads, double *out,
                      ggl_error *err) {
    const int64_t most = m->n_col > 0 && m->n_col < SAMPLE ? SAMPLE / m->n_col : 1;
    encoding e = {.m = m, .type = type, .step = (m->n_row + most - 1) / most};
    e.step = e.step > 0 ? e.step : 1;
    e.n_row = (m->n_row + e.step - 1) / e.step;
    e.sum = ggl_calloc((size_t)e.n_row + 1, sizeof *e.sum);
    if (!e.sum)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = encode_all(&e, n_threads, err);
    sums all = {0, 0}; /* in order, so that threads make no difference */
    for (int64_t i = 0; i < e.n_row; i++) {
        all.power += e.sum[i].power;
        all.error += e.sum[i].error;
    }
    *out = !isfinite(all.error) || !isfinite(all.power) ? INFINITY
           : all.power > 0                              ? all.error / all.power
                                                        : 0;
    ggl_free(e.sum);
    return st;
}

ggl_status loss_replace(const loss_matrix *m, const ggl_type_info *type, int n_threads, void *to,
                        ggl_error *err) {
    encoding e = {.m = m, .type = type, .step = 1, .n_row = m->n_row, .to = to};
    return encode_all(&e, n_threads, err);
}
