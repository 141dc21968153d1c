/* Elementary functions whose bits are the same on every machine; libm's are not. Only sqrt, fma,
 * rint and floor are taken from libm, which IEEE 754 defines. docs/numeric.md states each
 * function's formula and error.
 *
 * The double functions serve what is computed once (rope angles, slopes, constants, the sampler);
 * the float ones are the contract's scalar definition that every vector kernel equals bit for bit.
 */
#ifndef GGL_MATH_H
#define GGL_MATH_H

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Double: error below 2 ulp over the whole range (pow: 4 ulp). Infinities, NaN and domain errors as
 * C's Annex F has them. */
GGL_API double ggl_exp(double x);
GGL_API double ggl_log(double x);
GGL_API double ggl_log2(double x); /* exact for powers of two */
GGL_API double ggl_pow(
    double x, double y); /* exact where y is a small integer and the result fits; pow(x, 0) = 1 */
GGL_API double ggl_sin(double x);
GGL_API double ggl_cos(double x);
GGL_API double ggl_tanh(double x);
GGL_API double ggl_erf(double x);
GGL_API double ggl_sigmoid(double x); /* 1 / (1 + exp(-x)) */

/* Float: fixed polynomials in fused multiply-adds. */
GGL_API float ggl_expf(float x);
GGL_API float ggl_logf(float x);
GGL_API float ggl_tanhf(float x);
GGL_API float ggl_erff(float x);
GGL_API float ggl_sigmoidf(float x);

#ifdef __cplusplus
}
#endif
#endif
