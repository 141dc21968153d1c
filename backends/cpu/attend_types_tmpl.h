/* Attention kernels for each type of store without codes. A file includes this after its inline functions
 * scores() and values(), which have the type as a parameter; this defines scores_<TYPE> and
 * values_<TYPE>, with the type as a constant, and fill_by_type(), which sets the table to them. */
#define TYPES(X) X(F32) X(F16) X(BF16)

#define X(TYPE)                                                                                    \
    static void scores_##TYPE(float(*score)[GGL_PAGE], const float *const *query, int n_q,         \
                              const void *keys, int64_t d, const void *next) {                     \
        scores(score, query, n_q, keys, d, next, GGL_##TYPE);                                      \
    }                                                                                              \
    static void values_##TYPE(float *o, int64_t o_step, float(*p)[GGL_PAGE], int n_q,              \
                              const void *v, int64_t e, int j0, int j1, const void *next) {        \
        values(o, o_step, p, n_q, v, e, j0, j1, next, GGL_##TYPE);                                 \
    }
TYPES(X)
#undef X

static void fill_by_type(cpu_kernels *k) {
#define X(TYPE)                                                                                    \
    k->scores[GGL_##TYPE] = scores_##TYPE;                                                         \
    k->values[GGL_##TYPE] = values_##TYPE;
    TYPES(X)
#undef X
}
