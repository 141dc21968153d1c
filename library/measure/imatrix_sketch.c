#include "imatrix_sketch.h"

#include <math.h>
#include <string.h>

#include "ggl/types.h"

/* Mixes the bits of a column's number (splitmix64, by Steele, Lea and Flood, 2014). */
static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void signs_of(int64_t i, int n, float *sign) {
    const uint64_t bits = mix((uint64_t)i);
    for (int d = 0; d < n; d++)
        sign[d] = bits >> d & 1 ? -1.0f : 1.0f;
}

void llm_imatrix_signs(float *sign, int64_t n_col, int n) {
    for (int64_t i = 0; i < n_col; i++)
        signs_of(i, n, sign + i * n);
}

/* Rows that are added at once, to spare memory accesses. */
enum { AT_ONCE = 4 };

static void add_rows(double *sketch, const float *sign, int n, const float *const *x, int64_t n_col,
                     int n_row) {
    float z[AT_ONCE][GGL_MAX_DIRECTIONS] = {{0}}; /* x R / |x|^2 */
    double square[AT_ONCE] = {0};
    for (int64_t i = 0; i < n_col; i++)
        for (int r = 0; r < n_row; r++) {
            square[r] += (double)x[r][i] * (double)x[r][i];
            for (int d = 0; d < n; d++)
                z[r][d] += x[r][i] * sign[i * n + d];
        }
    for (int r = 0; r < n_row; r++)
        for (int d = 0; d < n; d++)
            z[r][d] = square[r] > 0 ? (float)((double)z[r][d] / square[r]) : 0;
    for (int64_t i = 0; i < n_col; i++)
        for (int r = 0; r < n_row; r++) {
            double *to = sketch + i * (n + 1);
            for (int d = 0; d < n; d++)
                to[d] += (double)(x[r][i] * z[r][d]);
            to[n] += square[r] > 0 ? (double)x[r][i] * (double)x[r][i] / square[r] : 0;
        }
}

void llm_imatrix_sketch_rows(double *sketch, const float *sign, int n, const float *x,
                             int64_t n_col, int64_t n_row, int64_t step) {
    for (int64_t r = 0; r < n_row; r += AT_ONCE) {
        const int k = n_row - r < AT_ONCE ? (int)(n_row - r) : AT_ONCE;
        const float *row[AT_ONCE] = {NULL};
        for (int j = 0; j < k; j++)
            row[j] = x + (r + j) * step;
        add_rows(sketch, sign, n, row, n_col, k);
    }
}

/* --- directions ------------------------------------------------------------------------------- */

/* How much of the products of different columns counts. A text has chance products, which another one does not have: with half of them,
 * models lose least on texts of both kinds, by measurement (docs/types.md). A few tokens tell next to nothing. */
static double share_of(int64_t n_row) {
    return 0.5 * (double)n_row / ((double)n_row + 32);
}

static const float *sketch_at(const imatrix_entry *e, int64_t i) {
    return e->sketch + i * (e->n_sketch + 1);
}

/* Sets b[n][n] to R^T C R, the lower half, and adds what rounding may have taken away to its diagonal. */
static void middle_of(const imatrix_entry *e, double *b) {
    const int n = e->n_sketch;
    double trace = 0;
    memset(b, 0, (size_t)(n * n) * sizeof *b);
    for (int64_t i = 0; i < e->n_col; i++) {
        float sign[GGL_MAX_DIRECTIONS];
        signs_of(i, n, sign);
        for (int c = 0; c < n; c++)
            for (int d = 0; d <= c; d++)
                b[c * n + d] += (double)sign[c] * (double)sketch_at(e, i)[d];
    }
    for (int d = 0; d < n; d++)
        trace += b[d * n + d];
    for (int d = 0; d < n; d++)
        b[d * n + d] += 1e-6 * fabs(trace);
}

/* Replaces b by L, with b = L L^T (Cholesky). A part that is not positive, which only a damaged file has, becomes infinite: nothing is
 * left of it after a division. */
static void factor(double *b, int n) {
    for (int c = 0; c < n; c++)
        for (int d = 0; d <= c; d++) {
            double s = b[c * n + d];
            for (int k = 0; k < d; k++)
                s -= b[c * n + k] * b[d * n + k];
            if (c == d)
                b[c * n + c] = s > 0 && isfinite(s) ? sqrt(s) : INFINITY;
            else
                b[c * n + d] = isfinite(b[d * n + d]) && isfinite(s) ? s / b[d * n + d] : 0;
        }
}

/* Returns what a mean square of an input as it is has in the unit of inputs that are made as long as each other. */
static double unit_of(const imatrix_entry *e) {
    double all = 0, sum2 = 0;
    for (int64_t i = 0; i < e->n_col; i++) {
        all += (double)sketch_at(e, i)[e->n_sketch];
        sum2 += (double)e->sum2[i];
    }
    return sum2 > 0 && isfinite(all / sum2) ? all / sum2 : 0;
}

/* Returns how much more a column counts than the directions know. A few tokens, such as the first, can have inputs that are thousands of
 * times as large as those of all others, in one or two columns: of inputs that are made as long as each other these columns are
 * nothing, but what the model makes of such tokens rests on them. Others differ by less than twice. */
static float beyond(double sum2, double unit, float all) {
    const double more = sum2 * unit - 2 * (double)all;
    return more > 0 && more <= 1e18 ? (float)more : 0;
}

void llm_imatrix_directions(const imatrix_entry *e, float *dir, float *own, float *power) {
    double b[GGL_MAX_DIRECTIONS * GGL_MAX_DIRECTIONS];
    const double unit = unit_of(e);
    const int n = e->n_sketch;
    const double share = sqrt(share_of(e->count[0]));
    middle_of(e, b);
    factor(b, n);
    for (int64_t i = 0; i < e->n_col; i++) {
        double v[GGL_MAX_DIRECTIONS];
        float shared = 0;
        for (int d = 0; d < n; d++) {
            double s = (double)sketch_at(e, i)[d];
            for (int k = 0; k < d; k++)
                s -= b[d * n + k] * v[k];
            v[d] = s / b[d * n + d];
            const double u = v[d] * share;
            dir[i * n + d] = fabs(u) <= 1e18 ? (float)u : 0;
            shared += dir[i * n + d] * dir[i * n + d];
        }
        const float all = sketch_at(e, i)[n];
        const float more = all > 0 ? beyond((double)e->sum2[i], unit, all) : 0;
        own[i] = (all > shared ? all - shared : 0) + more;
        power[i] = (all > 0 ? all > shared ? all : shared : 0) + more;
    }
}
