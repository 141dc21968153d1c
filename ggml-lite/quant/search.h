/* The search for scales in encoders; private to ggml-lite/quant. ggml's published encoders do not
 * simply divide by the largest element: they try several scales and keep the one with the least
 * weighted error. Which of two similar scales wins depends on the last bit, so all sums here are
 * formed in the same order as there: our files must have the same bytes. */
#ifndef GGL_QUANT_SEARCH_H
#define GGL_QUANT_SEARCH_H

#include <stdint.h>
#include <string.h>

/* Blocks whose elements are all smaller than this are encoded as zeros. */
#define QUANT_TINY 1e-15f

/* Returns the nearest integer, ties to even: the 23 bits of the sum's mantissa are that integer
 * plus 2^22. Beyond 2^22, and for NaN, the result is meaningless, but the same on every machine and
 * in the published encoders. */
static inline int quant_round(float x) {
    float y = x + 0x1.8p23f;
    uint32_t u;
    memcpy(&u, &y, sizeof u);
    return (int)(u & 0x7fffff) - 0x400000;
}

static inline int quant_clamp(int q, int low, int high) {
    return q < low ? low : q > high ? high : q;
}

/* top + 1 even steps from the smallest element (min) to the largest; d is the distance of two
 * steps. inverse is 1/d, or 0 if all codes must be 0 because d is 0, or d or 1/d is not finite. */
typedef struct quant_steps {
    float d, inverse, min;
} quant_steps;
quant_steps ggl_quant_even_steps(const float *x, int n, int top);

/* Returns the code of x, 0 .. top. Rounding may give top + 1, which is clamped. */
static inline int quant_step_of(const quant_steps *s, float x, int top) {
    int q = s->inverse != 0.0f ? (int)((x - s->min) * s->inverse + 0.5f) : 0;
    return q < top ? q : top;
}

/* The inverse scales that ggl_quant_fit_min tries: (top + first + step / 10) / range, for step = 0
 * .. n_steps. */
typedef struct quant_min_search {
    int top;
    float first;
    int n_steps;
    int absolute; /* 1: adds up absolute errors; 0: squared errors */
} quant_min_search;

/* Each function treats QUANT_AT_ONCE runs of elements, which follow one another at x. It sets as many
 * scales, and the codes of all elements. */
enum { QUANT_AT_ONCE = 8, QUANT_SYMMETRIC_RUN = 16 };

typedef struct quant_search {
    /* Finds codes 0 .. top, scales and minima (not negative) with x[i] ~ scale * code[i] - min, for
     * runs of n <= 32 elements. w: weights of the errors. */
    void (*fit_min)(const quant_min_search *how, const float *x, const float *w, int n,
                    uint8_t *code, float *scale, float *min);
    /* Finds codes 0 .. 2*top - 1 and scales with x[i] ~ scale * (code[i] - top), for runs of
     * QUANT_SYMMETRIC_RUN elements, by trying several scales. Errors are weighted by x^2. A scale is
     * 0, with all codes 0, if all elements of its run are tiny. */
    void (*fit_symmetric)(const float *x, int top, uint8_t *code, float *scale);
    /* Like fit_symmetric, but tries one scale, and then changes single codes as long as that reduces
     * the error. */
    void (*fit_greedy)(const float *x, int top, uint8_t *code, float *scale);
} quant_search;

/* Four or eight runs side by side, with the same results; the second only if the library was built
 * for processors that may have AVX2 (GGL_SEARCH_AVX2). */
extern const quant_search ggl_search_four, ggl_search_eight;

/* Returns the faster one that this processor runs. */
const quant_search *ggl_quant_search(void);

#endif
