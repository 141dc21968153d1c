/* Attention kernels for each type of store with codes. A file includes this after its functions
 * code_scores() and code_values(), which have the type as a parameter; this defines
 * code_scores_<TYPE> and code_values_<TYPE>, with the type as a constant, and fill_codes(), which
 * sets the table to them. */
#define CODES(X) X(Q8_0) X(Q4_0)

#define X(TYPE)                                                                                    \
    static void code_scores_##TYPE(float(*score)[GGL_PAGE], const cpu_qblock *const *query,        \
                                   int n_q, const void *keys, int64_t d, const void *next) {       \
        code_scores(score, query, n_q, keys, d, next, GGL_##TYPE);                                 \
    }                                                                                              \
    static void code_values_##TYPE(float *o, int64_t o_step, float(*p)[GGL_PAGE], int n_q,         \
                                   const void *v, int64_t e, const int *lo, const int *hi,         \
                                   const void *next) {                                             \
        code_values(o, o_step, p, n_q, v, e, lo, hi, next, GGL_##TYPE);                            \
    }
CODES(X)
#undef X

static void fill_codes(cpu_kernels *k) {
#define X(TYPE)                                                                                    \
    k->code_scores[GGL_##TYPE] = code_scores_##TYPE;                                               \
    k->code_values[GGL_##TYPE] = code_values_##TYPE;
    CODES(X)
#undef X
}
