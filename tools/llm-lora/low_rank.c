#include "low_rank.h"

#include <math.h>
#include <string.h>

#include "common/work_share.h"
#include "ggl/alloc.h"

enum {
    MORE = 8,       /* columns beyond the rank: they make the last values accurate */
    POWERS = 3,     /* power iterations: D and D^T are applied so often, after the first time */
    STEP = 1 << 20, /* elements of D that are held at a time, at least a row */
    BLOCK = 64,     /* rows or columns that a thread takes */
    SWEEPS = 60
};

#define LEAST 1e-12 /* of the largest value: smaller ones are rounding */

typedef struct job {
    const low_rank_source *s;
    size_t k;    /* columns of the small matrices */
    float *rows; /* [n][n_columns]: the rows first .. first + n - 1 of D */
    int64_t first, n;
    double *left;  /* [n_rows][k] */
    double *right; /* [n_columns][k] */
} job;

/* --- products --------------------------------------------------------------------------------- */

/* left[o] = sum_i D[o][i] right[i], for a block of rows */
static void times_block(void *ctx, size_t i_block, int thread) {
    const job *j = ctx;
    const int64_t begin = (int64_t)i_block * BLOCK;
    const int64_t end = begin + BLOCK < j->n ? begin + BLOCK : j->n;
    (void)thread;
    for (int64_t o = begin; o < end; o++) {
        const float *row = j->rows + (size_t)(o * j->s->n_columns);
        double *to = j->left + (size_t)(j->first + o) * j->k;
        memset(to, 0, j->k * sizeof *to);
        for (int64_t i = 0; i < j->s->n_columns; i++) {
            const double d = (double)row[i], *from = j->right + (size_t)i * j->k;
            for (size_t c = 0; c < j->k; c++)
                to[c] += d * from[c];
        }
    }
}

/* right[i] += sum_o D[o][i] left[o], for a block of columns; always in the order of o */
static void transposed_block(void *ctx, size_t i_block, int thread) {
    const job *j = ctx;
    const int64_t begin = (int64_t)i_block * BLOCK, n = j->s->n_columns;
    const int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
    (void)thread;
    for (int64_t o = 0; o < j->n; o++) {
        const float *row = j->rows + (size_t)(o * n);
        const double *from = j->left + (size_t)(j->first + o) * j->k;
        for (int64_t i = begin; i < end; i++) {
            const double d = (double)row[i];
            double *to = j->right + (size_t)i * j->k;
            for (size_t c = 0; c < j->k; c++)
                to[c] += d * from[c];
        }
    }
}

/* left = D right, or right = D^T left; *norm2, which may be NULL: the sum of D's squares. */
static bool multiply(job *j, bool transposed, double *norm2) {
    const int64_t n_columns = j->s->n_columns;
    const int64_t step = STEP / n_columns > 0 ? STEP / n_columns : 1;
    if (transposed)
        memset(j->right, 0, (size_t)n_columns * j->k * sizeof *j->right);
    for (j->first = 0; j->first < j->s->n_rows; j->first += j->n) {
        const int64_t left = j->s->n_rows - j->first, size = transposed ? n_columns : step;
        j->n = left < step ? left : step;
        if (!j->s->rows(j->s->ctx, j->first, j->n, j->rows))
            return false;
        for (int64_t i = 0; norm2 && i < j->n * n_columns; i++)
            *norm2 += (double)j->rows[i] * (double)j->rows[i];
        const int64_t n = transposed ? size : j->n;
        llm_work_share(j->s->n_threads, (size_t)((n + BLOCK - 1) / BLOCK),
                       transposed ? transposed_block : times_block, j);
    }
    return true;
}

/* --- small matrices --------------------------------------------------------------------------- */

/* Makes the columns of x[n][k] orthonormal (Gram-Schmidt); r[k][k], which may be NULL: x = q r. A
 * column that depends on those before it becomes zero. */
static void orthonormalize_once(double *x, int64_t n, size_t k, double *r, double *dot) {
    for (size_t c = 0; c < k; c++) {
        memset(dot, 0, k * sizeof *dot);
        for (int64_t o = 0; o < n; o++) {
            const double *row = x + (size_t)o * k;
            for (size_t l = c; l < k; l++)
                dot[l] += row[c] * row[l];
        }
        const double norm = sqrt(dot[c]), inverse = norm > 0 ? 1 / norm : 0;
        for (int64_t o = 0; o < n; o++) {
            double *row = x + (size_t)o * k;
            row[c] *= inverse;
            for (size_t l = c + 1; l < k; l++)
                row[l] -= dot[l] * inverse * row[c];
        }
        for (size_t l = c; r && l < k; l++)
            r[c * k + l] = l == c ? norm : dot[l] * inverse;
    }
}

/* The same, twice, because rounding leaves the first result less than orthogonal. Columns that the
 * first pass has left with nothing but rounding are dropped. */
static void orthonormalize(double *x, int64_t n, size_t k, double *r, double *work) {
    double *dot = work, *first = work + k, *second = first + k * k;
    memset(first, 0, 2 * k * k * sizeof *first);
    orthonormalize_once(x, n, k, first, dot);
    double most = 0;
    for (size_t c = 0; c < k; c++)
        most = first[c * k + c] > most ? first[c * k + c] : most;
    for (size_t c = 0; c < k; c++)
        if (first[c * k + c] <= most * 1e-14) /* dependent: what is left is rounding */
            for (int64_t o = 0; o < n; o++)
                x[(size_t)o * k + c] = 0;
    orthonormalize_once(x, n, k, second, dot);
    for (size_t a = 0; r && a < k; a++)
        for (size_t b = 0; b < k; b++) {
            r[a * k + b] = 0;
            for (size_t c = a; c <= b && c < k; c++)
                r[a * k + b] += second[a * k + c] * first[c * k + b];
        }
}

/* Rotates rows a and b of x[k][k] by the angle with tangent t. */
static void rotate(double *x, size_t k, size_t a, size_t b, double cos, double sin) {
    double *p = x + a * k, *q = x + b * k;
    for (size_t i = 0; i < k; i++) {
        const double old = p[i];
        p[i] = cos * old - sin * q[i];
        q[i] = sin * old + cos * q[i];
    }
}

/* One-sided Jacobi: rotates the rows of m[k][k] until they are orthogonal; w[k][k] has the rotations:
 * w m_before = m. (Golub and Van Loan, Matrix Computations, 8.6.3.) */
static void make_rows_orthogonal(double *m, double *w, size_t k) {
    memset(w, 0, k * k * sizeof *w);
    for (size_t i = 0; i < k; i++)
        w[i * k + i] = 1;
    bool again = true;
    for (int sweep = 0; sweep < SWEEPS && again; sweep++) {
        again = false;
        for (size_t a = 0; a + 1 < k; a++)
            for (size_t b = a + 1; b < k; b++) {
                double aa = 0, bb = 0, ab = 0;
                for (size_t i = 0; i < k; i++) {
                    aa += m[a * k + i] * m[a * k + i];
                    bb += m[b * k + i] * m[b * k + i];
                    ab += m[a * k + i] * m[b * k + i];
                }
                if (fabs(ab) <= 1e-15 * sqrt(aa * bb))
                    continue;
                const double z = (bb - aa) / (2 * ab);
                const double t = (z < 0 ? -1 : 1) / (fabs(z) + sqrt(1 + z * z));
                const double cos = 1 / sqrt(1 + t * t);
                rotate(m, k, a, b, cos, cos * t);
                rotate(w, k, a, b, cos, cos * t);
                again = true;
            }
    }
}

/* --- the decomposition ------------------------------------------------------------------------ */

/* Numbers between -1 and 1 that are the same in every run (splitmix64). */
static void fill_random(double *x, size_t n) {
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t z = state += 0x9E3779B97F4A7C15;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        x[i] = (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
    }
}

/* Sorts the values, chooses the rank, and computes the vectors: with right = v r and r^T = w^T m, the
 * rows of m have the lengths sigma. D ~ left right^T = (left w^T) (m / sigma) v^T. */
static bool finish(low_rank *out, const job *j, const double *q, const double *m, const double *w,
                   int64_t max_rank, double energy, double *sigma, size_t *order) {
    const size_t k = j->k;
    for (size_t a = 0; a < k; a++) {
        double sum = 0;
        for (size_t i = 0; i < k; i++)
            sum += m[a * k + i] * m[a * k + i];
        sigma[a] = sqrt(sum);
        size_t at = a;
        for (; at > 0 && sigma[order[at - 1]] < sigma[a]; at--)
            order[at] = order[at - 1];
        order[at] = a;
    }
    double kept = 0;
    while (out->rank < max_rank && (size_t)out->rank < k &&
           sigma[order[out->rank]] > LEAST * sigma[order[0]] &&
           (out->rank == 0 || energy >= 1 || kept < energy * out->norm2)) {
        const double s = sigma[order[out->rank++]];
        kept += s * s;
    }
    out->kept = out->norm2 > 0 ? (kept < out->norm2 ? kept / out->norm2 : 1) : 1;
    const size_t rank = (size_t)out->rank, n_u = (size_t)j->s->n_rows,
                 n_v = (size_t)j->s->n_columns;
    out->sigma = ggl_calloc(rank + 1, sizeof *out->sigma);
    out->u = ggl_calloc(rank + 1, n_u * sizeof *out->u);
    out->v = ggl_calloc(rank + 1, n_v * sizeof *out->v);
    if (!out->sigma || !out->u || !out->v)
        return false;
    for (size_t r = 0; r < rank; r++) {
        const size_t a = order[r];
        out->sigma[r] = sigma[a];
        for (size_t o = 0; o < n_u; o++)
            for (size_t c = 0; c < k; c++)
                out->u[r * n_u + o] += j->left[o * k + c] * w[a * k + c];
        for (size_t i = 0; i < n_v; i++)
            for (size_t c = 0; c < k; c++)
                out->v[r * n_v + i] += q[i * k + c] * m[a * k + c] / sigma[a];
    }
    return true;
}

/* D^T Q = right = q r, in the small matrix r: its transpose is decomposed. */
static bool decompose(low_rank *out, job *j, int64_t max_rank, double energy, double *work) {
    const size_t k = j->k;
    double *r = ggl_calloc(3 * k * k + k, sizeof *r), *m = r + k * k, *w = m + k * k;
    double *sigma = w + k * k;
    size_t *order = ggl_calloc(k, sizeof *order);
    bool ok = r && order;
    if (ok) {
        orthonormalize(j->right, j->s->n_columns, k, r, work);
        for (size_t a = 0; a < k; a++)
            for (size_t b = 0; b < k; b++)
                m[a * k + b] = r[b * k + a];
        make_rows_orthogonal(m, w, k);
        ok = finish(out, j, j->right, m, w, max_rank, energy, sigma, order);
    }
    ggl_free(r);
    ggl_free(order);
    return ok;
}

bool low_rank_new(low_rank *out, const low_rank_source *source, int64_t max_rank, double energy) {
    const int64_t rows = source->n_rows, columns = source->n_columns;
    const int64_t side = rows < columns ? rows : columns;
    const int64_t step = STEP / columns > 0 ? STEP / columns : 1;
    job j = {.s = source};
    *out = (low_rank){0};
    max_rank = max_rank < side ? max_rank : side;
    j.k = (size_t)(max_rank + MORE < side ? max_rank + MORE : side);
    j.rows = ggl_calloc((size_t)(step < rows ? step : rows), (size_t)columns * sizeof *j.rows);
    j.left = ggl_calloc((size_t)rows, j.k * sizeof *j.left);
    j.right = ggl_calloc((size_t)columns, j.k * sizeof *j.right);
    double *work = ggl_calloc(2 * j.k * j.k + j.k, sizeof *work);
    bool ok = j.rows && j.left && j.right && work;
    if (ok) {
        fill_random(j.right, (size_t)columns * j.k);
        ok = multiply(&j, false, &out->norm2);
    }
    for (int i = 0; ok && i < POWERS; i++) {
        orthonormalize(j.left, rows, j.k, NULL, work);
        ok = multiply(&j, true, NULL);
        if (ok)
            orthonormalize(j.right, columns, j.k, NULL, work);
        ok = ok && multiply(&j, false, NULL);
    }
    if (ok) {
        orthonormalize(j.left, rows, j.k, NULL, work);
        ok = multiply(&j, true, NULL) && decompose(out, &j, max_rank, energy, work);
    }
    ggl_free(j.rows);
    ggl_free(j.left);
    ggl_free(j.right);
    ggl_free(work);
    if (!ok)
        low_rank_fini(out);
    return ok;
}

void low_rank_fini(low_rank *x) {
    ggl_free(x->sigma);
    ggl_free(x->u);
    ggl_free(x->v);
    *x = (low_rank){0};
}
