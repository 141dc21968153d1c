/* This folder has kernels that are written once for all instruction sets. A file
 * <isa>/<kernel>_<isa>.c includes its definition of a vector (<isa>/vector_<isa>.h) and then one of
 * these headers. C's operators work on vectors lane by lane (an extension of gcc and clang); the
 * vector header defines everything else:
 *
 *   V_LANES                 floats in a vector vf, and 32-bit integers in a vi
 *   v_load v_store v_set    (v_load_n, v_store_n: the first n <= V_LANES, the others are 0)
 *   v_fma(a, b, c)          a * b + c, rounded once
 *   v_choose(m, a, b)       a where m is all ones, b where it is 0: m of a comparison
 *   ..                      and functions that only some kernels need
 *
 * This file has the elementary functions of docs/numeric-functions.md, with the same steps as the
 * scalar definitions in ggml-lite/base/math_float.c. */
#ifndef CPU_SIMD_FUNCTIONS_H
#define CPU_SIMD_FUNCTIONS_H

#include <math.h>
#include <string.h>

/* Unsigned integers, for sums and shifts that may overflow. */
typedef uint32_t vu __attribute__((vector_size(sizeof(vi))));

enum { V_16 = 16 / V_LANES, V_32 = 32 / V_LANES }; /* vectors of 16 and of 32 elements */

INLINE vf v_abs(vf x) {
    return (vf)((vi)x & 0x7fffffff);
}

INLINE vf v_negate(vf x) {
    return (vf)((vi)x ^ INT32_MIN);
}

INLINE vi v_is_nan(vf x) {
    return (vi)(x != x);
}

/* Returns y with the sign of x; y is not negative. */
INLINE vf v_with_sign(vf y, vf x) {
    return (vf)((vi)y | ((vi)x & INT32_MIN));
}

/* The same as max_of and min_of of scalar/scalar.h. */
INLINE vf v_max_of(vf a, vf b) {
    return v_choose((vi)(a > b) | v_is_nan(a), a, b);
}

INLINE vf v_min_of(vf a, vf b) {
    return v_choose((vi)(a < b) | v_is_nan(a), a, b);
}

/* All ones in the first n lanes. */
INLINE vi v_first(int64_t n) {
    return (vi)(v_index() < (int32_t)n);
}

/* Numbers below 2^-56 become 0: docs/numeric.md, section 4. */
INLINE vf v_cut_bf16(vf x) {
    return (vf)((vi)x & ~(vi)(v_abs(x) < v_set(0x1p-56f)));
}

/* Rounds to bf16, to nearest even, as f32. NaN becomes a quiet NaN; numbers below 2^-56 become
 * 0. */
INLINE vf v_to_bf16(vf x) {
    vu u = (vu)x;
    u = u + (((u >> 16) & 1) + 0x7fff);
    return v_choose(v_is_nan(x), v_set(NAN), v_cut_bf16((vf)(u & 0xffff0000)));
}

/* c[n-1] + x (c[n-2] + x (.. )), highest first in c */
INLINE vf v_horner(vf x, const float *c, int n) {
    vf p = v_set(c[0]);
    for (int i = 1; i < n; i++)
        p = v_fma(p, x, v_set(c[i]));
    return p;
}

/* exp(x) for x that is not NaN and whose result does not overflow. */
INLINE vf v_exp_moderate(vf x) {
    static const float c[] = {
        0x1.6d11fep-10f, 0x1.120c62p-7f, 0x1.555518p-5f, 0x1.5554dcp-3f, 0.5f, 1.0f, 1.0f};
    const vf magic = v_set(0x1.8p23f);
    vf z = v_fma(x, v_set(0x1.715476p0f), magic), n = z - magic;
    vf r = v_fma(n, v_set(-0x1.62e4p-1f), x);
    r = v_fma(n, v_set(-0x1.7f7d1cp-20f), r);
    vf y = (vf)((vu)v_horner(r, c, 7) + ((vu)z << 23));
    return (vf)((vi)y & ~(vi)(x < v_set(-0x1.5d589ep6f)));
}

INLINE vf v_exp(vf x) {
    vf y = v_exp_moderate(x);
    y = v_choose((vi)(x > v_set(0x1.62e42ep6f)), v_set(INFINITY), y);
    return v_choose(v_is_nan(x), x, y);
}

INLINE vf v_log(vf x) {
    static const float c[] = {0x1.ebce74p-4f, -0x1.071126p-3f, 0x1.b87ec2p-4f,
                              -0x1.f38ap-4f,  0x1.24f488p-3f,  -0x1.559906p-3f,
                              0x1.99977ep-3f, -0x1.ffff0ep-3f, 0x1.555556p-2f};
    const uint32_t two_thirds = 0x3f2aaaab;
    vi tiny = (vi)(x < v_set(0x1p-126f));
    vu u = (vu)v_choose(tiny, x * v_set(0x1p23f), x) - two_thirds;
    vf e = v_of_int((vi)(u & 0xff800000)) * v_set(0x1p-23f);
    e = e - (vf)(tiny & (vi)v_set(23.0f));
    vf r = (vf)((u & 0x007fffff) + two_thirds) - v_set(1.0f), s = r * r;
    vf t = v_fma(v_horner(r, c, 9) * r, s, e * v_set(0x1.7f7d1cp-20f));
    t = v_fma(s, v_set(-0.5f), t);
    vf y = v_fma(e, v_set(0x1.62e4p-1f), r + t);
    y = v_choose((vi)(x == v_set(INFINITY)), x, y);
    y = v_choose((vi)(x == v_set(0.0f)), v_set(-INFINITY), y);
    y = v_choose((vi)(x < v_set(0.0f)), v_set(NAN), y);
    return v_choose(v_is_nan(x), x, y);
}

INLINE vf v_tanh(vf x) {
    static const float c[] = {-0x1.7172cp-8f, 0x1.512decp-6f, -0x1.b8174p-5f, 0x1.110614p-3f,
                              -0x1.55552ep-2f};
    const vf one = v_set(1.0f);
    vf t = v_abs(x), z = t * t;
    vf small = v_fma(t * z, v_horner(z, c, 5), t);
    vf large = one - v_set(2.0f) / (v_exp(t + t) + one);
    vf y = v_choose((vi)(t < v_set(0.625f)), small, large);
    return v_choose(v_is_nan(x), x, v_with_sign(y, x));
}

INLINE vf v_erf(vf x) {
    static const float c[] = {0x1.4f5636p-14f, -0x1.a606c2p-11f, 0x1.5449e4p-8f, -0x1.b80118p-6f,
                              0x1.ce2d64p-4f,  -0x1.81274p-2f,   0x1.06eba8p-3f};
    static const float d[] = {-0x1.5d824p-16f, 0x1.c46374p-12f, -0x1.1064fap-8f, 0x1.9aed1ap-6f,
                              -0x1.bb45b2p-4f, -0x1.444d16p-1f, -0x1.212628p0f,  0x1.62dadp-13f};
    const vf four = v_set(4.0f);
    vf t = v_abs(x), z = t * t;
    vf small = v_fma(t, v_horner(z, c, 7), t);
    vf clamped = v_choose((vi)(t > four), four, t);
    vf large = v_set(1.0f) - v_exp(v_horner(clamped, d, 8));
    vf y = v_choose((vi)(t < v_set(0.90625f)), small, large);
    return v_choose(v_is_nan(x), x, v_with_sign(y, x));
}

INLINE vf v_sigmoid(vf x) {
    const vf one = v_set(1.0f);
    return one / (one + v_exp(v_negate(x)));
}

#endif
