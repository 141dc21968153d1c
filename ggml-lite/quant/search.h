/* Private to ggml-lite/quant: how encoders find scales. The published encoders (ggml's) do not only
 * divide by the largest element, they try several scales and keep that of the least weighted error.
 * Which of two that are nearly alike wins depends on the last bit, so each sum here is formed in
 * their order: files must agree byte for byte. */
#ifndef GGL_QUANT_SEARCH_H
#define GGL_QUANT_SEARCH_H

#include <stdint.h>
#include <string.h>

/* Blocks whose elements are all smaller than this are encoded as zeros. */
#define QUANT_TINY 1e-15f

/* The nearest integer, ties to even: the sum has it, plus 2^22, in its 23 bits of mantissa. Beyond
 * 2^22 and for NaN what comes out is of no use, but the same on every machine, and what the
 * published encoders have. */
static inline int quant_round(float x) {
    float y = x + 0x1.8p23f;
    uint32_t u;
    memcpy(&u, &y, sizeof u);
    return (int)(u & 0x7fffff) - 0x400000;
}

static inline int quant_clamp(int q, int low, int high) {
    return q < low ? low : q > high ? high : q;
}

/* d, 1/d and the minimum of top + 1 even steps from the smallest element to the largest. inverse is
 * 0 where all codes are to be 0: d is 0, or no finite number, or 1/d is not. */
typedef struct quant_steps {
    float d, inverse, min;
} quant_steps;
quant_steps ggl_quant_even_steps(const float *x, int n, int top);

/* The code of x, 0 .. top. Rounding may lead just past top, which is cut. */
static inline int quant_step_of(const quant_steps *s, float x, int top) {
    int q = s->inverse != 0.0f ? (int)((x - s->min) * s->inverse + 0.5f) : 0;
    return q < top ? q : top;
}

/* What ggl_quant_fit_min tries: scales from (top + first) / range on, n_steps more, each a tenth above
 * in the numerator. */
typedef struct quant_min_search {
    int top;
    float first;
    int n_steps;
    int absolute; /* errors count by their size, not by their square */
} quant_min_search;

/* x[i] ~ scale * code[i] - min with codes 0 .. top, n <= 32, min not negative; w: weights of the
 * errors. Gives the scale. */
float ggl_quant_fit_min(const quant_min_search *how, const float *x, const float *w, int n,
                        uint8_t *code, float *min);

/* x[i] ~ scale * (code[i] - top) with codes 0 .. 2*top - 1, for 16 elements, errors weighted by
 * x^2: several scales are tried. Gives the scale, 0 (and codes 0) for tiny elements. */
enum { QUANT_SYMMETRIC_RUN = 16 };
float ggl_quant_fit_symmetric(const float *x, int top, uint8_t *code);

/* As ggl_quant_fit_symmetric, but one scale is tried, and then codes are changed one by one for as long
 * as that helps. */
float ggl_quant_fit_greedy(const float *x, int top, uint8_t *code);

#endif
