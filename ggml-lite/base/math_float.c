/* The float functions of ggl/internal/math.h: the scalar definitions of the numeric contract.
 * docs/numeric-functions.md has the formulas. Each function is straight-line code (fmaf, + - * /)
 * with selects at the end, so that a vector kernel can do the same steps in its lanes and get the
 * same bits. Coefficients are our own minimax fits (Remez, then rounded to float). */
#include <float.h>
#include <math.h>

#include "fused.h"
#include "ggl/internal/math.h"
#include "number_bits.h"

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error                                                                                             \
    "float and double expressions must be evaluated in their own type (x86-32: -msse2 -mfpmath=sse)"
#endif

static float float_abs(float x) {
    return float_of(float_bits(x) & 0x7fffffff);
}

/* Returns y, which is not negative, with the sign of x. */
static float float_sign_of(float y, float x) {
    return float_of(float_bits(y) | (float_bits(x) & 0x80000000));
}

/* e^x = 2^n e^r,  n = x / ln 2 to nearest,  r = x - n ln 2.  0.93 ulp; results below 2^-126 are
 * 0. */
float ggl_expf(float x) {
    /* the low bits of z's mantissa are n */
    float z = fused_float(x, 0x1.715476p0f, 0x1.8p23f);
    float n = z - 0x1.8p23f;
    float r = fused_float(n, -0x1.62e4p-1f, x);
    r = fused_float(n, -0x1.7f7d1cp-20f, r);
    float p = 0x1.6d11fep-10f;
    p = fused_float(p, r, 0x1.120c62p-7f);
    p = fused_float(p, r, 0x1.555518p-5f);
    p = fused_float(p, r, 0x1.5554dcp-3f);
    p = fused_float(p, r, 0.5f);
    p = fused_float(p, r, 1.0f);
    p = fused_float(p, r, 1.0f);
    float y = float_of(float_bits(p) + (float_bits(z) << 23));
    y = x < -0x1.5d589ep6f ? 0.0f : y;
    y = x > 0x1.62e42ep6f ? INFINITY : y;
    return x != x ? x : y;
}

/* ln x = e ln 2 + ln(1 + r),  x = 2^e (1 + r),  1 + r in [2/3, 4/3). */
float ggl_logf(float x) {
    int tiny = x < 0x1p-126f; /* subnormal, zero or negative */
    float scaled = tiny ? x * 0x1p23f : x;
    uint32_t u = float_bits(scaled) - 0x3f2aaaab; /* 2/3 */
    int32_t k = (int32_t)(u & 0xff800000);        /* e << 23 */
    float e = (float)k * 0x1p-23f - (tiny ? 23.0f : 0.0f);
    float r = float_of((u & 0x007fffff) + 0x3f2aaaab) - 1.0f;
    float s = r * r;
    float p = 0x1.ebce74p-4f;
    p = fused_float(p, r, -0x1.071126p-3f);
    p = fused_float(p, r, 0x1.b87ec2p-4f);
    p = fused_float(p, r, -0x1.f38ap-4f);
    p = fused_float(p, r, 0x1.24f488p-3f);
    p = fused_float(p, r, -0x1.559906p-3f);
    p = fused_float(p, r, 0x1.99977ep-3f);
    p = fused_float(p, r, -0x1.ffff0ep-3f);
    p = fused_float(p, r, 0x1.555556p-2f);
    float t = fused_float(p * r, s, e * 0x1.7f7d1cp-20f);
    t = fused_float(s, -0.5f, t);
    float y = fused_float(e, 0x1.62e4p-1f, r + t);
    y = x == INFINITY ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    return x != x ? x : y;
}

/* |x| < 0.625: x + x^3 P(x^2);  else 1 - 2 / (e^2x + 1). */
float ggl_tanhf(float x) {
    float t = float_abs(x), z = t * t;
    float p = -0x1.7172cp-8f;
    p = fused_float(p, z, 0x1.512decp-6f);
    p = fused_float(p, z, -0x1.b8174p-5f);
    p = fused_float(p, z, 0x1.110614p-3f);
    p = fused_float(p, z, -0x1.55552ep-2f);
    float small = fused_float(t * z, p, t);
    float large = 1.0f - 2.0f / (ggl_expf(t + t) + 1.0f);
    float y = t < 0.625f ? small : large;
    return x != x ? x : float_sign_of(y, x);
}

/* |x| < 0.90625: x + x P(x^2);  else 1 - e^q(x), where q approximates ln erfc. */
float ggl_erff(float x) {
    float t = float_abs(x), z = t * t;
    float p = 0x1.4f5636p-14f;
    p = fused_float(p, z, -0x1.a606c2p-11f);
    p = fused_float(p, z, 0x1.5449e4p-8f);
    p = fused_float(p, z, -0x1.b80118p-6f);
    p = fused_float(p, z, 0x1.ce2d64p-4f);
    p = fused_float(p, z, -0x1.81274p-2f);
    p = fused_float(p, z, 0x1.06eba8p-3f);
    float small = fused_float(t, p, t);
    float c = t > 4.0f ? 4.0f : t; /* erfc(4) < 2^-25: the result is 1 from there on */
    float q = -0x1.5d824p-16f;
    q = fused_float(q, c, 0x1.c46374p-12f);
    q = fused_float(q, c, -0x1.1064fap-8f);
    q = fused_float(q, c, 0x1.9aed1ap-6f);
    q = fused_float(q, c, -0x1.bb45b2p-4f);
    q = fused_float(q, c, -0x1.444d16p-1f);
    q = fused_float(q, c, -0x1.212628p0f);
    q = fused_float(q, c, 0x1.62dadp-13f);
    float large = 1.0f - ggl_expf(q);
    float y = t < 0.90625f ? small : large;
    return x != x ? x : float_sign_of(y, x);
}

/* Below -0x1.62e42ep6 the exponential is infinite, and the result is 0. */
float ggl_sigmoidf(float x) {
    return 1.0f / (1.0f + ggl_expf(-x));
}
