/* Row reductions and rotation. The sixteen running sums of a row are V_16 vectors. */
#include "functions.h"

INLINE vf square(vf x) {
    return x * x;
}

INLINE float sum_of(const float *x, int64_t n, int squared) {
    vf s[V_16];
    int64_t i = 0;
    for (int h = 0; h < V_16; h++)
        s[h] = v_set(0.0f);
    for (; i + 16 <= n; i += 16)
        for (int h = 0; h < V_16; h++) {
            vf a = v_load(x + i + V_LANES * h);
            s[h] = s[h] + (squared ? square(a) : a);
        }
    for (int h = 0; h < V_16 && i < n; h++, i += V_LANES) {
        /* adding +0 changes nothing, as none of these sums is ever -0 */
        vf a = n - i < V_LANES ? v_load_n(x + i, n - i) : v_load(x + i);
        s[h] = s[h] + (squared ? square(a) : a);
    }
    return v_tree(s);
}

static float sum(const float *x, int64_t n) {
    return sum_of(x, n, 0);
}

static float sum_squares(const float *x, int64_t n) {
    return sum_of(x, n, 1);
}

static float amax(const float *x, int64_t n) {
    vf m = v_set(-INFINITY);
    vi nan = (vi)v_set(0.0f);
    for (int64_t i = 0; i < n; i += V_LANES) {
        vf v = n - i < V_LANES ? v_choose(v_first(n - i), v_load_n(x + i, n - i), v_set(-INFINITY))
                               : v_load(x + i);
        nan |= v_is_nan(v);
        m = v_max(m, v);
    }
    return v_any(nan) ? NAN : v_largest(m) + 0.0f;
}

/* --- Walsh and Hadamard -------------------------------------------------------------------- */

/* One step over pairs that are h apart. With a constant h below V_LANES the compiler makes shuffles of it. */
INLINE void pairs_apart(float *y, int64_t n, int64_t h) {
    for (int64_t i = 0; i < n; i += 2 * h)
        for (int64_t k = i; k < i + h; k++) {
            float a = y[k], b = y[k + h];
            y[k] = a + b;
            y[k + h] = a - b;
        }
}

static void hadamard(float *y, const float *x, int64_t n, float scale) {
    if (y != x)
        memcpy(y, x, (size_t)n * sizeof *y);
    int64_t h = 1;
    for (; h < n && h < V_LANES; h *= 2)
        h == 1   ? pairs_apart(y, n, 1)
        : h == 2 ? pairs_apart(y, n, 2)
        : h == 4 ? pairs_apart(y, n, 4)
                 : pairs_apart(y, n, 8);
    for (; h < n; h *= 2)
        for (int64_t i = 0; i < n; i += 2 * h)
            for (int64_t k = i; k < i + h; k += V_LANES) {
                vf a = v_load(y + k), b = v_load(y + k + h);
                v_store(y + k, a + b);
                v_store(y + k + h, a - b);
            }
    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

/* --- rotation ------------------------------------------------------------------------------ */

static void turn(float *y0, float *y1, float x0, float x1, float c, float s) {
    float a = x1 * s, b = x1 * c;
    *y0 = fmaf(x0, c, -a);
    *y1 = fmaf(x0, s, b);
}

static void rope_half(float *y, const float *x, const float *cs, int64_t r) {
    int64_t i = 0;
    for (; i + V_LANES <= r; i += V_LANES) {
        vf u = v_load(cs + 2 * i), v = v_load(cs + 2 * i + V_LANES);
        vf c = v_evens(u, v), s = v_odds(u, v);
        vf x0 = v_load(x + i), x1 = v_load(x + i + r);
        v_store(y + i, v_fma(x0, c, v_negate(x1 * s)));
        v_store(y + i + r, v_fma(x0, s, x1 * c));
    }
    for (; i < r; i++)
        turn(y + i, y + i + r, x[i], x[i + r], cs[2 * i], cs[2 * i + 1]);
}

/* Rotates adjacent pairs: y0 = x0 c - (x1 s), y1 = x0 s + (x1 c). */
static void rope_pair(float *y, const float *x, const float *cs, int64_t r) {
    const vi even_signs = ((v_index() & 1) - 1) & INT32_MIN;
    int64_t i = 0;
    for (; i + V_LANES / 2 <= r; i += V_LANES / 2) {
        vf u = v_load(cs + 2 * i), v = v_load(x + 2 * i);
        vf p = v_twice_odds(v) * v_swap_pairs(u);
        v_store(y + 2 * i, v_fma(v_twice_evens(v), u, (vf)((vi)p ^ even_signs)));
    }
    for (; i < r; i++)
        turn(y + 2 * i, y + 2 * i + 1, x[2 * i], x[2 * i + 1], cs[2 * i], cs[2 * i + 1]);
}

/* --- chains -------------------------------------------------------------------------------- */

#include "chains_tmpl.h"

static void fill_rows(cpu_kernels *k) {
#define ROW_SLOT(name, fn, where)  CPU_SET_##where(k->name, name)
#define ROPE_SLOT(name, fn, where) CPU_SET_##where(k->name, name)
#include "../slots.def"
}
