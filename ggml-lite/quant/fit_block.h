/* Encoding with importance: the search for the scales and codes with the least weighted error;
 * private to ggml-lite/quant. The error of a block is the sum over its elements of weight times the
 * squared difference. The weight is importance * sqrt(x^2 + mean square of the block): with importance
 * alone, the predictions of models change more, by measurement. Every function first multiplies the elements by a power of two, so that
 * the largest is in [1, 2), and divides the importance by its mean: nothing overflows, whatever the
 * units. */
#ifndef GGL_FIT_BLOCK_H
#define GGL_FIT_BLOCK_H

#include "lanes.h"
#include "quant.h"

enum { FIT_BLOCK = 256, FIT_RUN = 32, FIT_RUNS = 16 };
/* What rounding can take away from the difference of two sums of squared errors. */
#define FIT_NOISE 1e-6f

/* What the runs of a type can store. */
typedef struct fit_form {
    int n;                     /* elements of a run: 16 or 32 */
    int low, high;             /* codes; with levels, their indices */
    const int8_t *level;       /* what the codes stand for, ascending; NULL: themselves */
    int scale_low, scale_high; /* integer scales of a block of 256 */
    int min_high;              /* integer minima, 0 .. min_high */
    int n_starts;              /* factors of the block from which the search starts */
    /* The inverse scales that are tried put the largest element at the outermost code plus first,
     * first + step, .. */
    float first, step;
    int n_steps;
} fit_form;

/* A block of 256: element i of run r is d * scale[r] * (code + low, or level) - dmin * min[r]. */
typedef struct fit_block {
    float d, dmin; /* as f16 has them; infinite if they are too large */
    int scale[FIT_RUNS], min[FIT_RUNS];
    uint8_t code[FIT_BLOCK];
} fit_block;

/* Elements and weights in the range of the search. */
typedef struct fit_source {
    float x[FIT_BLOCK], w[FIT_BLOCK];
    int exponent; /* x is the element times 2^-exponent */
} fit_source;

/* Reads n <= 256 elements; importance NULL: all the same. Importance that is negative or not finite
 * counts as 0; a millionth of the mean is added to all, so that columns that were never used do not
 * become noise. Returns false if the elements are zeros, or so small that f16 scales cannot hold
 * them. */
bool ggl_fit_read(fit_source *s, const float *src, const float *importance, int n);
/* Returns the f16 next to d * 2^exponent, as a number of the search; d if that is infinite. */
float ggl_fit_f16(float d, int exponent);

/* Returns the factor for a finished block y of the elements x, from the weighted sums of x * x and
 * x * y. Least squares leaves an error that points against x, so that all products with the row
 * become smaller. With the factor, y is as long as x in the direction of x, and the error is at
 * right angles to x: larger, but it is different in each product. */
float ggl_fit_gain(double xx, double xy);

/* Numbers of the runs of a block, which become a factor times integers low .. high. */
typedef struct fit_numbers {
    const float *x, *steepness; /* [n]; how much an error costs */
    const float *period;        /* NULL: none. With it added once or twice, a number is as good. */
    int n, low, high;           /* n: a multiple of LANES */
} fit_numbers;
/* Factors from which the search begins, the likeliest first. */
enum { FIT_STARTS = 6 };
typedef struct fit_start {
    float d, cost;
} fit_start;
/* Sets the factors at which the numbers are nearest to integers, and the largest is one of the outer half of these. */
void ggl_fit_starts(const fit_numbers *of, fit_start start[FIT_STARTS]);

/* Reads block i of blocks of 32 elements, weights 1 and elements 0 if ggl_fit_read cannot. Returns 0, or NaN if an element is not finite. */
float ggl_fit_read_run(fit_source *s, const float *src, const float *importance, int i);

/* Blocks of 32 with an f16 scale each: element i of block l is d[l] * (code + low, or level)
 * + m[l]. */
enum { FIT_AT_ONCE = 8 };
typedef struct fit_rows {
    float d[FIT_AT_ONCE], m[FIT_AT_ONCE];
    uint8_t code[FIT_AT_ONCE * FIT_RUN];
} fit_rows;

/* ggl_fit_scales and ggl_fit_mins set the codes, scales and minima of a block of 256 finite elements; all zeros if the elements
 * are. ggl_fit_rows_scales and ggl_fit_rows_mins encode FIT_AT_ONCE blocks of 32. A block with
 * an element that is not finite gets d NaN. *_mins is for types with minima, *_scales for the others. _four and _eight, which only
 * processors with AVX2 run, have the same results. */
#define FIT_SEARCHES(with)                                                                         \
    void ggl_fit_scales##with(const fit_form *f, const float *src, const float *importance,        \
                              fit_block *out);                                                     \
    void ggl_fit_mins##with(const fit_form *f, const float *src, const float *importance,          \
                            fit_block *out);                                                       \
    void ggl_fit_rows_scales##with(const fit_form *f, const float *src, const float *importance,   \
                                   fit_rows *out);                                                 \
    void ggl_fit_rows_mins##with(const fit_form *f, const float *src, const float *importance,     \
                                 fit_rows *out);
FIT_SEARCHES()
FIT_SEARCHES(_four)
FIT_SEARCHES(_eight)
#undef FIT_SEARCHES

/* Returns the number that the code for t stands for. */
static inline vf fit_value(const fit_form *f, vf t) {
    if (f->level) {
        vf v = vf_all((float)f->level[0]);
        for (int k = 1; k <= f->high; k++) {
            vf middle = vf_all(0.5f * (float)(f->level[k - 1] + f->level[k]));
            vf step = vf_all((float)(f->level[k] - f->level[k - 1]));
            v += (vf)((vi)step & (t >= middle));
        }
        return v;
    }
    vf low = vf_all((float)f->low), high = vf_all((float)f->high);
    t = vf_pick(t < low, low, t);
    t = vf_pick(t > high, high, t);
    return (t + vf_all(0x1.8p23f)) - vf_all(0x1.8p23f);
}

/* Returns the stored code for a number that fit_value gave. */
static inline int fit_code(const fit_form *f, float v) {
    int code = 0;
    if (!f->level)
        return (int)v - f->low;
    while (code < f->high && (float)f->level[code] < v)
        code++;
    return code;
}

#endif
