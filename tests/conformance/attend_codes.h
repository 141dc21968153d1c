/* Attention to rows that are stored as codes of 8 or 4 bits, by the contract (docs/numeric.md, section 6). */
#ifndef TESTS_ATTEND_CODES_H
#define TESTS_ATTEND_CODES_H

#include <math.h>
#include <string.h>

#include "ggl/internal/math.h"
#include "ggl/internal/types.h"

/* The code of element i of a row, and the scale of its block. */
static inline int code_of(ggl_type type, const char *row, int64_t i) {
    const uint8_t *block = (const uint8_t *)row + i / 32 * (type == GGL_Q8_0 ? 34 : 18) + 2;
    const int64_t k = i % 32;
    if (type == GGL_Q8_0)
        return (int8_t)block[k];
    return (k < 16 ? block[k] & 15 : block[k - 16] >> 4) - 8;
}
static inline float scale_of(ggl_type type, const char *row, int64_t i) {
    uint16_t half;
    memcpy(&half, row + i / 32 * (type == GGL_Q8_0 ? 34 : 18), 2);
    return ggl_f16_to_f32(half);
}

/* The product of a row of d codes and a query, which is rounded in blocks of 32. */
static inline float product_of_codes(ggl_type type, const char *row, const float *query,
                                     int64_t d) {
    float a = 0;
    for (int64_t b = 0; b < d; b += 32) {
        float m = 0;
        for (int i = 0; i < 32; i++) /* NaN above all */
            m = isnan(query[b + i]) || isnan(m) ? NAN : fmaxf(m, fabsf(query[b + i]));
        const float inverse = 127 / m;
        const bool odd = !(m < INFINITY), none = m < 0x1p-100f;
        int64_t sum = 0;
        for (int i = 0; i < 32 && !odd && !none; i++)
            sum += code_of(type, row, b + i) * (int)rintf(query[b + i] * inverse);
        const float product = (float)sum * scale_of(type, row, b);
        a = fmaf(product, odd ? NAN : none ? 0 : m / 127, a);
    }
    return a;
}

/* Element i of the sum of the rows lo .. hi - 1 of a page, `stride` bytes apart, with these weights. */
static inline float value_of_codes(ggl_type type, const char *row, size_t stride, const float *w,
                                   int64_t lo, int64_t hi, int64_t i) {
    float m = 0;
    for (int64_t j = lo; j < hi; j++) {
        const float scale = scale_of(type, row + (size_t)j * stride, i);
        m = isnan(scale) || isnan(m) ? NAN : fmaxf(m, fabsf(scale));
    }
    if (!(m < INFINITY))
        return NAN;
    int64_t sum = 0;
    const float inverse = 16256 / m;
    for (int64_t j = lo; j < hi && m > 0; j++) {
        const float scale = scale_of(type, row + (size_t)j * stride, i) * inverse,
                    weight = w[j] * scale;
        sum +=
            isnan(weight) ? 0 : (int64_t)rintf(weight) * code_of(type, row + (size_t)j * stride, i);
    }
    return (float)sum * (m / 16256);
}

#endif
