/* The searches of fit_block.h: for as many runs at once as this processor has instructions for. */
#include "fit_block.h"

#ifdef GGL_SEARCH_AVX2
#define DISPATCH(name, result)                                                                     \
    void name(const fit_form *f, const float *src, const float *importance, result *out) {         \
        (__builtin_cpu_supports("avx2") ? name##_eight : name##_four)(f, src, importance, out);    \
    }
#else
#define DISPATCH(name, result)                                                                     \
    void name(const fit_form *f, const float *src, const float *importance, result *out) {         \
        name##_four(f, src, importance, out);                                                      \
    }
#endif
DISPATCH(ggl_fit_scales, fit_block)
DISPATCH(ggl_fit_mins, fit_block)
DISPATCH(ggl_fit_rows_scales, fit_rows)
DISPATCH(ggl_fit_rows_mins, fit_rows)
