/* Recurrences, and the short convolution. A few rows of the state are updated at a time, so that
 * the operands that rows share are loaded once, and so that the rows' chains of sums overlap. */
#include "../unroll.h"
#include "functions.h"

enum { SIDE = V_LANES / 2 }; /* rows at a time */

/* Returns vector h of the sixteen elements from i on of a row of n. tail: the row may end within
 * them; elements past its end are 0. */
INLINE vf part(const float *x, int64_t i, int h, int64_t n, const bool tail) {
    int64_t at = i + V_LANES * h, left = n - at;
    return !tail || left >= V_LANES ? v_load(x + at)
           : left <= 0              ? v_set(0.0f)
                                    : v_load_n(x + at, left);
}

/* Stores v where part() would load it. */
INLINE void put(float *y, int64_t i, int h, int64_t n, const bool tail, vf v) {
    int64_t at = i + V_LANES * h, left = n - at;
    if (!tail || left >= V_LANES)
        v_store(y + at, v);
    else if (left > 0)
        v_store_n(y + at, v, left);
}

/* Returns v with zeros past the row's end, where 0 * Inf may have given NaN. */
INLINE vf inside(vf v, int64_t i, int h, int64_t n, const bool tail) {
    int64_t left = n - i - V_LANES * h;
    return !tail || left >= V_LANES ? v : (vf)((vi)v & v_first(left));
}

/* Sets y[j] to the sum of row j. */
INLINE void add_up(const int rows, float *y, const vf (*sum)[V_16]) {
    const int fours = rows / 4 * 4;
    UNROLL for (int j = 0; j < fours; j += 4) v_four_trees(y + j, sum + j);
    UNROLL for (int j = fours; j < rows; j++) y[j] = v_tree(sum[j]);
    UNROLL for (int j = 0; j < rows; j++) y[j] = y[j] + 0.0f;
}

/* True if e depends on the whole row before the update. */
INLINE bool looks_back(const cpu_recur_kind kind) {
    return kind == CPU_DELTA || kind == CPU_WKV7;
}

/* Computes e of each row, and for DELTA the first product of its update. */
INLINE void before(const cpu_recur_kind kind, const int rows, const bool tail, float *s,
                   const float *v, const cpu_recur *r, float *e) {
    const int64_t n = r->n, end = tail ? n : n / 16 * 16;
    vf sum[SIDE][V_16];
    UNROLL for (int j = 0; j < rows; j++) UNROLL for (int h = 0; h < V_16; h++) sum[j][h] =
        v_set(0.0f);
    for (int64_t i = 0; i < end; i += 16)
        UNROLL for (int h = 0; h < V_16; h++) {
            const vf by = part(kind == CPU_DELTA ? r->k : r->a, i, h, n, tail);
            const vf w = kind == CPU_DELTA ? part(r->w, i, h, n, tail) : by;
            UNROLL for (int j = 0; j < rows; j++) {
                vf x = part(s + j * n, i, h, n, tail);
                if (kind == CPU_DELTA) {
                    x = inside(x * w, i, h, n, tail);
                    put(s + j * n, i, h, n, tail, x);
                }
                sum[j][h] = v_fma(x, by, sum[j][h]);
            }
        }
    add_up(rows, e, sum);
    if (kind == CPU_DELTA)
        UNROLL for (int j = 0; j < rows; j++) e[j] = (v[j] - e[j]) * r->rate;
}

/* Vectors of the operands that all rows share. */
typedef struct shared {
    vf w, k, b;
} shared;
/* Returns the updated state for the vector x of a row (for DELTA, of the first product), and sets *out to the vector that
 * the row's result is summed from. v, e: the row's numbers; rates: its vector of a. */
INLINE vf next(const cpu_recur_kind kind, vf x, const shared *u, vf rates, float v, float e,
               vf *out) {
    switch (kind) {
    case CPU_DELTA:
        return *out = x + u->k * v_set(e);
    case CPU_SCAN:
        return *out = x * u->w + u->k * v_set(v);
    case CPU_SELECT:
        return *out = x * v_exp(rates * v_set(e)) + u->k * v_set(v);
    case CPU_WKV6: {
        const vf now = u->k * v_set(v);
        *out = x + now * u->b;
        return x * u->w + now;
    }
    default:
        return *out = (x * u->w + u->b * v_set(e)) + u->k * v_set(v);
    }
}

/* Updates `rows` rows (a constant) of the state from s on for one token; first: number of the first
 * one in r->v; back: e of each row, where before() has computed it. */
INLINE void some_rows(const cpu_recur_kind kind, const int rows, const bool tail, float *s,
                      float *y, int64_t first, const float *back, const cpu_recur *r) {
    const int64_t n = r->n, end = tail ? n : n / 16 * 16;
    const float *a = kind == CPU_SELECT ? r->a + first * n : NULL;
    float v[SIDE], e[SIDE];
    vf sum[SIDE][V_16];
    UNROLL for (int j = 0; j < rows; j++) {
        v[j] = r->v[first + j];
        e[j] = kind == CPU_SELECT ? r->b[first + j] : looks_back(kind) ? back[j] : 0.0f;
        UNROLL for (int h = 0; h < V_16; h++) sum[j][h] = v_set(0.0f);
    }
    UNROLL for (int j = 0; j < rows; j++) v[j] = kind == CPU_SCAN     ? v[j] * r->rate
                                                 : kind == CPU_SELECT ? v[j] * e[j]
                                                                      : v[j];
    for (int64_t i = 0; i < end; i += 16)
        UNROLL for (int h = 0; h < V_16; h++) {
            const vf k = part(r->k, i, h, n, tail), q = part(r->q, i, h, n, tail);
            const shared u = {
                .k = k,
                .w = kind == CPU_SELECT || kind == CPU_DELTA ? k : part(r->w, i, h, n, tail),
                .b = kind == CPU_WKV6 || kind == CPU_WKV7 ? part(r->b, i, h, n, tail) : k};
            UNROLL for (int j = 0; j < rows; j++) {
                vf out, x = part(s + j * n, i, h, n, tail);
                vf rates = kind == CPU_SELECT ? part(a + j * n, i, h, n, tail) : k;
                x = next(kind, x, &u, rates, v[j], e[j], &out);
                put(s + j * n, i, h, n, tail, x);
                sum[j][h] = v_fma(inside(out, i, h, n, tail), q, sum[j][h]);
            }
        }
    add_up(rows, y, sum);
}

/* e of many rows is computed before any of them is updated, so that none waits for its own sum. */
INLINE void all_rows(const cpu_recur_kind kind, const bool tail, float *s, float *y, int64_t n_rows,
                     const cpu_recur *r) {
    enum { MANY = 32 };
    const int64_t n = r->n;
    float e[MANY] = {0};
    for (int64_t first = 0; first < n_rows; first += MANY) {
        const int64_t end = n_rows - first < MANY ? n_rows : first + MANY;
        int64_t j = looks_back(kind) ? first : end;
        for (; j + SIDE <= end; j += SIDE)
            before(kind, SIDE, tail, s + j * n, r->v + j, r, e + (j - first));
        for (; j < end; j++)
            before(kind, 1, tail, s + j * n, r->v + j, r, e + (j - first));
        for (j = first; j + SIDE <= end; j += SIDE)
            some_rows(kind, SIDE, tail, s + j * n, y + j, j, e + (j - first), r);
        for (; j < end; j++)
            some_rows(kind, 1, tail, s + j * n, y + j, j, e + (j - first), r);
    }
}

#define RECUR_SLOT(NAME, where)                                                                    \
    static void rows_##NAME(float *s, float *y, int64_t n_rows, const cpu_recur *r) {              \
        if (r->n % 16 == 0)                                                                        \
            all_rows(CPU_##NAME, false, s, y, n_rows, r);                                          \
        else                                                                                       \
            all_rows(CPU_##NAME, true, s, y, n_rows, r);                                           \
    }
#include "../slots.def"

/* --- the short convolution ------------------------------------------------------------------- */

/* Sets tap[j] to weight j of V_LANES elements; each element's four weights are adjacent in w. */
INLINE void taps_of_four(const float *w, vf *tap) {
    const vf a = v_load(w), b = v_load(w + V_LANES), c = v_load(w + 2 * V_LANES),
             d = v_load(w + 3 * V_LANES);
    const vf even = v_evens(a, b), odd = v_odds(a, b), even2 = v_evens(c, d), odd2 = v_odds(c, d);
    tap[0] = v_evens(even, even2);
    tap[1] = v_evens(odd, odd2);
    tap[2] = v_odds(even, even2);
    tap[3] = v_odds(odd, odd2);
}

/* Returns the weights w[0], w[step], .. of up to `left` elements; the other lanes are 0. */
INLINE vf one_tap(const float *w, int64_t step, int64_t left) {
    float t[V_LANES] = {0};
    for (int c = 0; c < V_LANES && c < left; c++)
        t[c] = w[c * step];
    return v_load(t);
}

/* Returns the elements of row j from i on, times their weight j. */
INLINE vf conv_product(const float *const *x, const float *w, int64_t n, int64_t k, int64_t i,
                       int64_t j) {
    return part(x[j], i, 0, n, true) * one_tap(w + i * k + j, k, n - i);
}

/* The convolution for k = 4. Of the sixteen sums, the twelve that stay 0 are left out; adding +0 at
 * the end gives the same bits. */
static void conv_of_four(float *y, const float *const *x, const float *w, int64_t n) {
    int64_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES) {
        vf tap[4];
        taps_of_four(w + 4 * i, tap);
        const vf even = v_load(x[0] + i) * tap[0] + v_load(x[2] + i) * tap[2];
        const vf odd = v_load(x[1] + i) * tap[1] + v_load(x[3] + i) * tap[3];
        v_store(y + i, (even + odd) + v_set(0.0f));
    }
    if (i < n) {
        const vf even = conv_product(x, w, n, 4, i, 0) + conv_product(x, w, n, 4, i, 2);
        const vf odd = conv_product(x, w, n, 4, i, 1) + conv_product(x, w, n, 4, i, 3);
        put(y, i, 0, n, true, (even + odd) + v_set(0.0f));
    }
}

static void conv(float *y, const float *const *x, const float *w, int64_t n, int64_t k) {
    if (k == 4) {
        conv_of_four(y, x, w, n);
        return;
    }
    for (int64_t i = 0; i < n; i += V_LANES) {
        vf s[16];
        UNROLL for (int j = 0; j < 16; j++) s[j] = v_set(0.0f);
        for (int64_t j = 0; j < k; j++)
            s[j % 16] = s[j % 16] + conv_product(x, w, n, k, i, j);
        UNROLL for (int j = 0; j < 8; j++) s[j] = s[j] + s[j + 8];
        UNROLL for (int j = 0; j < 4; j++) s[j] = s[j] + s[j + 4];
        put(y, i, 0, n, true, (s[0] + s[2]) + (s[1] + s[3]));
    }
}

static void fill_recur(cpu_kernels *k) {
#define RECUR_SLOT(NAME, where)     CPU_SET_##where(k->recur[CPU_##NAME], rows_##NAME)
#define STATE_SLOT(name, fn, where) CPU_SET_##where(k->name, name)
#include "../slots.def"
}
