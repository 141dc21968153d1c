/* Attention over a page of 64 positions (docs/numeric.md, section 6). For scores, lanes are
 * positions; for the sums of values, lanes are elements of a value. Stored numbers are decoded in
 * registers, sixteen at a time, and multiplied with several queries there. V_SUMS is the number of
 * sums that fit in registers, in sixteens. */
#include "../prefetch.h"
#include "../unroll.h"
#include "functions.h"
#include "ggl/internal/types.h"

/* queries that share a decoded number; most vectors of stored numbers */
enum { MOST = 4, WIDE = 8 * V_16 };

/* Returns how many vectors of stored numbers are decoded at a time for n_q queries: at most `most`
 * sixteens. */
INLINE int vectors_at_once(const int n_q, const int most) {
    const int n = V_SUMS / (n_q > 2 ? 4 : 2);
    return V_16 * (n < most ? n : most);
}

/* Returns the bytes of i elements. */
INLINE int64_t bytes_of(int64_t i, const ggl_type type) {
    return type == GGL_F32 ? i * 4 : i * 2;
}

/* Loads V_LANES elements from i on. */
INLINE vf load_plain(const void *p, int64_t i, const ggl_type type) {
    return type == GGL_F32   ? v_load((const float *)p + i)
           : type == GGL_F16 ? v_load_half((const uint16_t *)p + i)
                             : v_load_bfloat((const uint16_t *)p + i);
}

/* --- scores -------------------------------------------------------------------------------- */

INLINE void score_step(vf (*a)[WIDE], const float *const *query, const int n_q, int64_t i,
                       const vf *k, const int n) {
    EACH_OF(q, n_q) {
        const vf x = v_set(query[q][i]);
        EACH_OF(v, n) a[q][v] = v_fma(k[v], x, a[q][v]);
    }
}

INLINE void scores_q(float (*score)[GGL_PAGE], const float *const *query, const int n_q,
                     const void *keys, int64_t d, const void *next, const ggl_type type) {
    const int n = vectors_at_once(n_q, 4);
    for (int j = 0; j < GGL_PAGE; j += V_LANES * n) {
        vf a[MOST][WIDE];
        EACH_OF(q, n_q) EACH_OF(v, n) a[q][v] = v_set(0.0f);
        for (int64_t i = 0; i < d; i++) {
            vf k[WIDE];
            fetch_next(keys, bytes_of(i * GGL_PAGE + j, type), bytes_of(V_LANES * n, type),
                       GGL_PAGE * bytes_of(d, type), next);
            EACH_OF(v, n) k[v] = load_plain(keys, i * GGL_PAGE + j + V_LANES * v, type);
            score_step(a, query, n_q, i, k, n);
        }
        EACH_OF(q, n_q) EACH_OF(v, n) v_store(score[q] + j + V_LANES * v, a[q][v]);
    }
}

/* --- values -------------------------------------------------------------------------------- */

/* Loads elements 16 u .. 16 u + 15 of the values at p. */
INLINE void load_value(vf *x, const char *p, const int u, const ggl_type type) {
    EACH_OF(h, V_16) x[h] = load_plain(p, 16 * u + V_LANES * h, type);
}

/* Adds weights times values to n vectors of o, from element 16 u on. v: the values at position 0,
 * from the same element as o on. The first `done` elements are left as they are. */
INLINE void values_at(float *o, int64_t o_step, float (*p)[GGL_PAGE], const int n_q, const char *v,
                      int64_t row_size, const int u, const int n, int done, int j0, int j1,
                      const void *next, const ggl_type type) {
    vf a[MOST][WIDE], x[WIDE];
    o += 16 * u;
    EACH_OF(q, n_q) EACH_OF(h, n) a[q][h] = v_load(o + q * o_step + V_LANES * h);
    for (int j = j0; j < j1; j++) {
        fetch_next(v, j * row_size, bytes_of(V_LANES * n, type), GGL_PAGE * row_size, next);
        EACH_OF(k, n / V_16) load_value(x + k * V_16, v + j * row_size, u + k, type);
        EACH_OF(q, n_q) {
            const vf w = v_set(p[q][j]);
            EACH_OF(h, n) a[q][h] = v_fma(w, x[h], a[q][h]);
        }
    }
    EACH_OF(q, n_q) EACH_OF(h, n) {
        float *to = o + q * o_step + V_LANES * h;
        v_store(to, done ? v_choose(v_first(done - V_LANES * h), v_load(to), a[q][h]) : a[q][h]);
    }
}

/* Values of fewer than sixteen elements. */
INLINE void values_few(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                       int64_t e, int j0, int j1, const ggl_type type) {
    for (int q = 0; q < n_q; q++, o += o_step)
        for (int j = j0; j < j1; j++)
            for (int64_t i = 0, k = j * e; i < e; i++, k++) {
                float x = type == GGL_F32   ? ((const float *)v)[k]
                          : type == GGL_F16 ? ggl_f16_to_f32(((const uint16_t *)v)[k])
                                            : ggl_bf16_to_f32(((const uint16_t *)v)[k]);
                o[i] = fmaf(p[q][j], x, o[i]);
            }
}

INLINE void values_q(float *o, int64_t o_step, float (*p)[GGL_PAGE], const int n_q, const char *v,
                     int64_t e, int j0, int j1, const char *next, const ggl_type type) {
    const int64_t row_size = bytes_of(e, type);
    const int n = vectors_at_once(n_q, 8);
    int64_t i = 0;
#define AT(u, n, done)                                                                             \
    values_at(o + i, o_step, p, n_q, v + bytes_of(i, type), row_size, u, n, done, j0, j1,          \
              next + bytes_of(i, type), type)
    for (; n == 8 * V_16 && i + 128 <= e; i += 128)
        AT(0, 8 * V_16, 0);
    for (; n >= 4 * V_16 && i + 64 <= e; i += 64)
        AT(0, 4 * V_16, 0);
    for (; n >= 2 * V_16 && i + 32 <= e; i += 32)
        AT(0, 2 * V_16, 0);
    for (; i + 32 <= e; i += 32) {
        AT(0, V_16, 0);
        AT(1, V_16, 0);
    }
    for (; i + 16 <= e; i += 16)
        AT(0, V_16, 0);
    int done = (int)(i + 16 - e);
    i = e - 16;
    if (done < 16)
        AT(0, V_16, done);
#undef AT
}

/* --- by type, and number of queries -------------------------------------------------------- */

#define COUNTS(X) X(1) X(2) X(3) X(4)
_Static_assert(MOST == 4, "COUNTS has all numbers of queries");

INLINE void scores(float (*score)[GGL_PAGE], const float *const *query, int n_q, const void *keys,
                   int64_t d, const void *next, const ggl_type type) {
    for (; n_q > 0; n_q -= MOST, score += MOST, query += MOST, next = keys)
        switch (n_q < MOST ? n_q : MOST) {
#define X(n)                                                                                       \
    case n:                                                                                        \
        scores_q(score, query, n, keys, d, next, type);                                            \
        break;
            COUNTS(X)
#undef X
        default:
            break;
        }
}

INLINE void values(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                   int64_t e, int j0, int j1, const void *next, const ggl_type type) {
    if (e < 16) {
        values_few(o, o_step, p, n_q, v, e, j0, j1, type);
        return;
    }
    for (; n_q > 0; n_q -= MOST, o += MOST * o_step, p += MOST, next = v)
        switch (n_q < MOST ? n_q : MOST) {
#define X(n)                                                                                       \
    case n:                                                                                        \
        values_q(o, o_step, p, n, v, e, j0, j1, next, type);                                       \
        break;
            COUNTS(X)
#undef X
        default:
            break;
        }
}

#include "../attend_types_tmpl.h"

/* --- softmax ------------------------------------------------------------------------------- */

/* whole: lo .. hi-1 is the whole page. */
INLINE float softmax_part(float *s, int lo, int hi, float scale, float *sum, const bool whole) {
    enum { N = GGL_PAGE / V_LANES };
    vf x[N], top = v_set(-INFINITY), sums[V_16];
    vi nan = (vi)v_set(0.0f), seen[N];
    EACH_OF(v, N) {
        x[v] = v_load(s + V_LANES * v) * v_set(scale);
        seen[v] = v_first(hi - V_LANES * v) & ~v_first(lo - V_LANES * v);
        const vf y = whole ? x[v] : v_choose(seen[v], x[v], v_set(-INFINITY));
        nan |= v_is_nan(y);
        top = v_max(top, y);
    }
    const float m = v_any(nan) ? NAN : v_largest(top) + 0.0f;
    const bool finite = fabsf(m) < INFINITY; /* if not, differences may be NaN */
    EACH_OF(h, V_16) sums[h] = v_set(0.0f);
    EACH_OF(v, N) {
        vf e = x[v] - v_set(m);
        e = finite ? v_exp_moderate(e) : v_exp(e);
        e = whole ? e : (vf)((vi)e & seen[v]);
        v_store(s + V_LANES * v, e);
        sums[v % V_16] = sums[v % V_16] + e;
    }
    *sum = v_tree(sums);
    return m;
}

static float softmax_page(float *s, int lo, int hi, float scale, float *sum) {
    return lo == 0 && hi == GGL_PAGE ? softmax_part(s, 0, GGL_PAGE, scale, sum, true)
                                     : softmax_part(s, lo, hi, scale, sum, false);
}

static void merge(float *total, const float *part, float a, float b, int64_t n) {
    int64_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES)
        v_store(total + i, v_fma(v_load(total + i), v_set(a), v_load(part + i) * v_set(b)));
    if (i < n) {
        vf p = v_load_n(part + i, n - i) * v_set(b);
        v_store_n(total + i, v_fma(v_load_n(total + i, n - i), v_set(a), p), n - i);
    }
}

/* n queries, at most V_LANES. */
INLINE void merge_sums_at(float *m, float *l, const float *part_m, const float *part_l,
                          float (*factor)[2], const int n) {
    const bool whole = n >= V_LANES;
    const vf old = whole ? v_load(m) : v_load_n(m, n),
             add = whole ? v_load(part_m) : v_load_n(part_m, n), top = v_max_of(old, add),
             a = v_exp(old - top), b = v_exp(add - top),
             part = (whole ? v_load(part_l) : v_load_n(part_l, n)) * b,
             sum = v_fma(whole ? v_load(l) : v_load_n(l, n), a, part);
    float share[2][V_LANES];
    v_store(share[0], a);
    v_store(share[1], b);
    for (int q = 0; q < n; q++)
        factor[q][0] = share[0][q], factor[q][1] = share[1][q];
    if (whole) {
        v_store(m, top);
        v_store(l, sum);
    } else {
        v_store_n(m, top, n);
        v_store_n(l, sum, n);
    }
}

static void merge_sums(float *m, float *l, const float *part_m, const float *part_l,
                       float (*factor)[2], int n) {
    int q = 0;
    for (; q + V_LANES <= n; q += V_LANES)
        merge_sums_at(m + q, l + q, part_m + q, part_l + q, factor + q, V_LANES);
    if (q < n)
        merge_sums_at(m + q, l + q, part_m + q, part_l + q, factor + q, n - q);
}

#include "attend_panels_tmpl.h"

static void fill_attend(cpu_kernels *k) {
    fill_by_type(k);
#define PAGE_SLOT(name, fn, where) CPU_SET_##where(k->name, name)
#include "../slots.def"
}
