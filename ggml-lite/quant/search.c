/* The search for scales: see search.h. The result depends on the order of every float operation. */
#include "search.h"

#include <math.h>

#include "quant.h"

quant_steps ggl_quant_even_steps(const float *x, int n, int top) {
    float min = x[0], max = x[0], nan = quant_extreme(x, n);
    if (isnan(nan))
        return (quant_steps){.d = nan, .min = nan};
    for (int i = 1; i < n; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    quant_steps s = {.d = (max - min) / (float)top, .min = min};
    if (s.d != 0.0f && isfinite(s.d) && isfinite(1.0f / s.d))
        s.inverse = 1.0f / s.d;
    return s;
}

#define SEARCH_TABLE ggl_search_four
#include "search_lanes_tmpl.h"

const quant_search *ggl_quant_search(void) {
#ifdef GGL_SEARCH_AVX2
    if (__builtin_cpu_supports("avx2"))
        return &ggl_search_eight;
#endif
    return &ggl_search_four;
}
