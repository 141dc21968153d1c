/* Elementary functions whose results have the same bits on every machine, unlike libm's. They use
 * only sqrt, fma, rint and floor of libm, which IEEE 754 defines exactly. docs/numeric.md states
 * each function's formula and error.
 *
 * The double functions are for values that are computed once (rope angles, slopes, constants, the
 * sampler). The float functions are the scalar definitions of the numeric contract: every vector
 * kernel must have the same bits.
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef GGL_MATH_H
#define GGL_MATH_H

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Double: the error is below 2 ulp over the whole range (pow: 4 ulp). Infinities, NaN and domain
 * errors are as in C's Annex F. */
double ggl_exp(double x);
double ggl_log(double x);
double ggl_log2(double x); /* exact for powers of two */
/* Exact if y is a small integer and the result fits; pow(x, 0) = 1. */
double ggl_pow(double x, double y);
double ggl_sin(double x);
double ggl_cos(double x);
double ggl_tanh(double x);
double ggl_erf(double x);
double ggl_sigmoid(double x); /* 1 / (1 + exp(-x)) */

/* Float: fixed polynomials in fused multiply-adds. */
float ggl_expf(float x);
float ggl_logf(float x);
float ggl_tanhf(float x);
float ggl_erff(float x);
float ggl_sigmoidf(float x);

#ifdef __cplusplus
}
#endif
#endif
