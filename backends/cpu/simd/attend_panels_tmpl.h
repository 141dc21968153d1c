/* Attention of many queries over a page as panels of f32; part of attend_tmpl.h. The sums of
 * CPU_TILE queries by TALL vectors stay in registers over all dimensions (scores) or positions
 * (values), so that each vector of a panel that is loaded serves all queries. */
enum { TALL = V_SUMS / 4 * V_16 };
_Static_assert(CPU_TILE == 6 && GGL_PAGE % (TALL * V_LANES) == 0, "tiles are whole");

INLINE void panel_scores_q(float (*score)[GGL_PAGE], const float *const *query, const int n_q,
                           const float *keys, int64_t d) {
    for (int j = 0; j < GGL_PAGE; j += V_LANES * TALL) {
        vf a[CPU_TILE][TALL];
        EACH_OF(q, n_q) EACH_OF(v, TALL) a[q][v] = v_set(0.0f);
        const float *k = keys + j;
        for (int64_t i = 0; i < d; i++, k += GGL_PAGE) {
            vf x[TALL];
            EACH_OF(v, TALL) x[v] = v_load(k + V_LANES * v);
            EACH_OF(q, n_q) {
                const vf y = v_set(query[q][i]);
                EACH_OF(v, TALL) a[q][v] = v_fma(x[v], y, a[q][v]);
            }
        }
        EACH_OF(q, n_q) EACH_OF(v, TALL) v_store(score[q] + j + V_LANES * v, a[q][v]);
    }
}

/* Does `many` vectors of elements. */
INLINE void panel_values_at(float *total, int64_t n, float (*w)[GGL_PAGE], const int n_q,
                            const float *values, float (*share)[2], const int many) {
    vf a[CPU_TILE][TALL];
    EACH_OF(q, n_q) EACH_OF(v, many) a[q][v] = v_set(0.0f);
    for (int j = 0; j < GGL_PAGE; j++, values += n) {
        vf x[TALL];
        EACH_OF(v, many) x[v] = v_load(values + V_LANES * v);
        EACH_OF(q, n_q) {
            const vf y = v_set(w[q][j]);
            EACH_OF(v, many) a[q][v] = v_fma(y, x[v], a[q][v]);
        }
    }
    EACH_OF(q, n_q) {
        float *to = total + q * n;
        if (share) {
            const vf old = v_set(share[q][0]), add = v_set(share[q][1]);
            EACH_OF(v, many) {
                a[q][v] = v_fma(v_load(to + V_LANES * v), old, a[q][v] * add);
            }
        }
        EACH_OF(v, many) v_store(to + V_LANES * v, a[q][v]);
    }
}

INLINE void panel_values_q(float *total, int64_t n, float (*w)[GGL_PAGE], const int n_q,
                           const float *values, float (*share)[2]) {
    int64_t i = 0;
    for (; i + TALL * V_LANES <= n; i += TALL * V_LANES)
        panel_values_at(total + i, n, w, n_q, values + i, share, TALL);
    for (; i < n; i += V_LANES)
        panel_values_at(total + i, n, w, n_q, values + i, share, 1);
}

/* --- softmax ------------------------------------------------------------------------------- */

enum { PAGES = 4, N_PAGE = GGL_PAGE / V_LANES };

/* Sets m to the largest numbers of four pages times the scale. Returns false if one is not finite,
 * or if this cannot be excluded: then a sum of all is no number or infinite. */
INLINE bool largest_of_pages(float (*s)[GGL_PAGE], float scale, float *m) {
    vf odd = v_set(0.0f);
    EACH_OF(q, PAGES) {
        vf top = v_load(s[q]) * v_set(scale), sum = top;
        for (int v = 1; v < N_PAGE; v++) {
            const vf x = v_load(s[q] + V_LANES * v) * v_set(scale);
            top = v_max(top, x);
            sum = sum + x;
        }
        odd = v_fma(sum, v_set(0.0f), odd); /* 0, or NaN for good */
        m[q] = v_largest(top) + 0.0f;
    }
    return !v_any(v_is_nan(odd));
}

/* Four whole pages whose numbers are finite: no exp waits for the one before it. */
INLINE void softmax_four(float (*s)[GGL_PAGE], float scale, const float *m, float *sum) {
    vf sums[PAGES][V_16];
    EACH_OF(q, PAGES) EACH_OF(h, V_16) sums[q][h] = v_set(0.0f);
    for (int j = 0; j < GGL_PAGE; j += 16)
        EACH_OF(h, V_16) EACH_OF(q, PAGES) {
            float *at = s[q] + j + V_LANES * h;
            const vf e = v_exp_moderate(v_load(at) * v_set(scale) - v_set(m[q]));
            v_store(at, e);
            sums[q][h] = sums[q][h] + e;
        }
    v_four_trees(sum, (const vf(*)[V_16])sums);
}

static void softmax_pages(float (*s)[GGL_PAGE], int n, float scale, float *m, float *sum) {
    int q = 0;
    for (; q + PAGES <= n; q += PAGES)
        if (largest_of_pages(s + q, scale, m + q))
            softmax_four(s + q, scale, m + q, sum + q);
        else
            for (int k = q; k < q + PAGES; k++)
                m[k] = softmax_page(s[k], 0, GGL_PAGE, scale, sum + k);
    for (; q < n; q++)
        m[q] = softmax_page(s[q], 0, GGL_PAGE, scale, sum + q);
}

/* --- by number of queries ------------------------------------------------------------------ */

#define COUNTS_TILE(X) X(1) X(2) X(3) X(4) X(5) X(6)

static void panel_scores(float (*score)[GGL_PAGE], const float *const *query, int n_q,
                         const float *keys, int64_t d) {
    switch (n_q) {
#define X(n)                                                                                       \
    case n:                                                                                        \
        panel_scores_q(score, query, n, keys, d);                                                  \
        break;
        COUNTS_TILE(X)
#undef X
    default:
        break;
    }
}

static void panel_values(float *total, int64_t n, float (*w)[GGL_PAGE], int n_q,
                         const float *values, float (*share)[2]) {
    switch (n_q) {
#define X(count)                                                                                   \
    case count:                                                                                    \
        panel_values_q(total, n, w, count, values, share);                                         \
        break;
        COUNTS_TILE(X)
#undef X
    default:
        break;
    }
}
