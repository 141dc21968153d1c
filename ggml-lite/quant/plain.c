/* The conversions of the plain (not quantized) types. See ggl/types.h. */
#include <math.h>
#include <string.h>

#include "ggl/types.h"
#include "quant/lanes.h"
#include "quant/quant.h"

static uint32_t f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float f32_of_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* IEEE 754 binary16:  | sign 1 | exponent 5, bias 15 | mantissa 10 |
 * A signaling NaN becomes quiet, in both directions, as in the conversions of processors. */
float ggl_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
    if (e == 31)
        return f32_of_bits(sign | 0x7f800000 | m << 13 | (m ? 0x400000 : 0));
    if (e > 0)
        return f32_of_bits(sign | (e - 15 + 127) << 23 | m << 13);
    /* zero or subnormal: m units of 2^-24, exact in a normal float */
    return f32_of_bits(sign | f32_bits((float)m * 0x1p-24f));
}

uint16_t ggl_f32_to_f16(float f) {
    uint32_t u = f32_bits(f), a = u & 0x7fffffff;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x477ff000) /* 65520, half way from the largest f16 (65504) to 65536: infinity */
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) { /* below 2^-14, the smallest normal f16: a multiple of 2^-24 */
        uint32_t shift = 126 - (a >> 23), m = (a & 0x7fffff) | 0x800000;
        if (shift > 24) /* below half a unit */
            return sign;
        uint32_t rest = m & ((1u << shift) - 1), half = 1u << (shift - 1);
        m >>= shift;
        return (uint16_t)(sign | (m + (rest > half || (rest == half && (m & 1)))));
    }
    /* normal: add just under half of the last kept place, plus its parity; a carry may run into the
     * exponent, which is the right answer */
    a += 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | ((a - ((127 - 15) << 23)) >> 13));
}

/* bfloat16 is the upper half of a float:  | sign 1 | exponent 8, bias 127 | mantissa 7 | */
float ggl_bf16_to_f32(uint16_t h) {
    return f32_of_bits((uint32_t)h << 16);
}

uint16_t ggl_f32_to_bf16(float f) {
    uint32_t u = f32_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40); /* quiet bit: stays NaN without its low half */
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* 8-bit float of OCP, E4M3:  | sign 1 | exponent 4, bias 7 | mantissa 3 |; no infinities, 0x7f and 0xff are NaN. */
float ggl_f8_e4m3_to_f32(uint8_t h) {
    const uint32_t sign = (uint32_t)(h & 0x80) << 24, a = h & 0x7f;
    if (a == 0x7f)
        return f32_of_bits(sign | 0x7fc00000);
    if (a < 8) /* zero or subnormal: units of 2^-9 */
        return f32_of_bits(sign | f32_bits((float)a * 0x1p-9f));
    return f32_of_bits(sign | ((a << 20) + ((127 - 7) << 23)));
}

uint8_t ggl_f32_to_f8_e4m3(float f) {
    uint32_t u = f32_bits(f), a = u & 0x7fffffff;
    const uint8_t sign = (uint8_t)(u >> 24 & 0x80);
    if (a > 0x43e80000) /* above 464, half way from the largest, 448, to 480, or NaN */
        return sign | 0x7f;
    if (a <
        0x3c800000) /* below 2^-6, the smallest normal: a multiple of 2^-9, to which the addition rounds */
        return (uint8_t)(sign | (f32_bits(f32_of_bits(a) + 0x1p14f) - f32_bits(0x1p14f)));
    a += 0x7ffff + (a >> 20 & 1);
    return (uint8_t)(sign | ((a - ((127 - 7) << 23)) >> 20));
}

/* Rows may be unaligned (a GGUF file chooses its alignment), so elements are copied as bytes. */

void ggl_f32_to_float(const void *src, float *dst, int64_t n) {
    memmove(dst, src, (size_t)n * sizeof *dst);
}

void ggl_f32_from_float(const float *src, void *dst, int64_t n) {
    memmove(dst, src, (size_t)n * sizeof *src);
}

/* Returns the bits of the floats of four halves, as ggl_f16_to_f32 does. */
static vi four_halves(vi h) {
    const vi bits = (h & vi_all(0x7fff)) << 13, rebias = vi_all((127 - 15) << 23);
    const vi top = bits >= vi_all(31 << 23), nan = bits > vi_all(31 << 23);
    /* A subnormal half is m * 2^-24: with the exponent of 2^-14, the leading one is too much. */
    const vi small = (vi)((vf)(bits + rebias + vi_all(1 << 23)) - vf_all(0x1p-14f));
    vi f = bits + rebias + (top & rebias);
    f = vi_pick(bits < vi_all(1 << 23), small, f) | (nan & vi_all(0x400000));
    return f | (h & vi_all(0x8000)) << 16;
}

/* The same for bfloat16. */
static vi four_brains(vi h) {
    return h << 16;
}

/* Returns the halves nearest to four floats, as ggl_f32_to_f16 does. u: the floats' bits. */
static vi four_to_halves(vi u) {
    const vi a = u & vi_all(0x7fffffff), odd = a >> 13 & vi_all(1);
    const vi normal = (a - vi_all((127 - 15) << 23) + vi_all(0xfff) + odd) >> 13;
    /* Floats from 1/2 on are multiples of 2^-24, as subnormal halves are: the addition rounds. */
    const vi small = (vi)((vf)a + vf_all(0.5f)) - vi_all(0x3f000000);
    vi h = vi_pick(a < vi_all(0x38800000), small, normal);
    h = vi_pick(a >= vi_all(0x477ff000), vi_all(0x7c00), h);
    h = vi_pick(a > vi_all(0x7f800000), vi_all(0x7e00) | (a >> 13 & vi_all(0x3ff)), h);
    return h | (u >> 16 & vi_all(0x8000));
}

/* The same for bfloat16. */
static vi four_to_brains(vi u) {
    const vi nan = (u & vi_all(0x7fffffff)) > vi_all(0x7f800000);
    const vi number = u & ~nan; /* no sum overflows */
    const vi rounded = number + vi_all(0x7fff) + (number >> 16 & vi_all(1));
    return vi_pick(nan, u >> 16 | vi_all(0x40), rounded >> 16);
}

/* Four 16-bit numbers in a row. */
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));

static vi load_four(const char *from) {
    vh h;
    memcpy(&h, from, sizeof h);
    return __builtin_convertvector(h, vi);
}

/* Stores the lower halves of the lanes. */
static void store_four(char *to, vi x) {
    const vh h = __builtin_convertvector(x, vh);
    memcpy(to, &h, sizeof h);
}

/* The loops over rows of 16-bit numbers. four: converts the bits of four numbers; one: a number. */
static inline void to_floats(const void *src, float *dst, int64_t n, vi (*four)(vi),
                             float (*one)(uint16_t)) {
    const char *from = src;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vi f = four(load_four(from + 2 * i));
        memcpy(dst + i, &f, sizeof f);
    }
    for (; i < n; i++) {
        uint16_t h;
        memcpy(&h, from + 2 * i, 2);
        dst[i] = one(h);
    }
}

static inline void from_floats(const float *src, void *dst, int64_t n, vi (*four)(vi),
                               uint16_t (*one)(float)) {
    char *to = dst;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vi u;
        memcpy(&u, src + i, sizeof u);
        store_four(to + 2 * i, four(u));
    }
    for (; i < n; i++) {
        const uint16_t h = one(src[i]);
        memcpy(to + 2 * i, &h, 2);
    }
}

void ggl_f16_to_float(const void *src, float *dst, int64_t n) {
    to_floats(src, dst, n, four_halves, ggl_f16_to_f32);
}

void ggl_f16_from_float(const float *src, void *dst, int64_t n) {
    from_floats(src, dst, n, four_to_halves, ggl_f32_to_f16);
}

void ggl_bf16_to_float(const void *src, float *dst, int64_t n) {
    to_floats(src, dst, n, four_brains, ggl_bf16_to_f32);
}

void ggl_bf16_from_float(const float *src, void *dst, int64_t n) {
    from_floats(src, dst, n, four_to_brains, ggl_f32_to_bf16);
}

void ggl_f8_e4m3_to_float(const void *src, float *dst, int64_t n) {
    const uint8_t *from = src;
    for (int64_t i = 0; i < n; i++)
        dst[i] = ggl_f8_e4m3_to_f32(from[i]);
}

void ggl_f8_e4m3_from_float(const float *src, void *dst, int64_t n) {
    uint8_t *to = dst;
    for (int64_t i = 0; i < n; i++)
        to[i] = ggl_f32_to_f8_e4m3(src[i]);
}

void ggl_i32_to_float(const void *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int32_t v;
        memcpy(&v, (const char *)src + 4 * i, 4);
        dst[i] = (float)v;
    }
}

/* Rounds to nearest even. Numbers out of range become the nearest limit, NaN becomes 0. */
void ggl_i32_from_float(const float *src, void *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float x = rintf(src[i]);
        int32_t v = x != x ? 0 : x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : (int32_t)x;
        memcpy((char *)dst + 4 * i, &v, 4);
    }
}

void ggl_i64_to_float(const void *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t v;
        memcpy(&v, (const char *)src + 8 * i, 8);
        dst[i] = (float)v;
    }
}

/* As for i32. */
void ggl_i64_from_float(const float *src, void *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float x = rintf(src[i]);
        int64_t v = x != x ? 0 : x >= 0x1p63f ? INT64_MAX : x <= -0x1p63f ? INT64_MIN : (int64_t)x;
        memcpy((char *)dst + 8 * i, &v, 8);
    }
}

void ggl_f64_to_float(const void *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, (const char *)src + 8 * i, 8);
        dst[i] = (float)v;
    }
}

void ggl_f64_from_float(const float *src, void *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double v = src[i];
        memcpy((char *)dst + 8 * i, &v, 8);
    }
}
