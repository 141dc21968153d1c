/* Declares the conversions of every type in types.def, and has helpers for quantized types. Private
 * to ggml-lite. */
#ifndef GGL_QUANT_H
#define GGL_QUANT_H

#include <string.h>

#include "blocks.h"
#include "ggl/internal/types.h"

#define PLAIN(id, NAME, name, size, text)                                                          \
    void ggl_##name##_to_float(const void *src, float *dst, int64_t n);                            \
    void ggl_##name##_from_float(const float *src, void *dst, int64_t n);
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    void ggl_##name##_unpack(const void *block_, int k, ggl_codes *out);                           \
    void ggl_##name##_from_float(const float *src, void *dst, int64_t n);
#define QUANT_READ(id, NAME, name, block, size, form, text)                                        \
    void ggl_##name##_unpack(const void *block_, int k, ggl_codes *out);
#include "ggl/types.def"

/* The types whose encoders use importance, as T(NAME, name). */
#define QUANT_WEIGHTED(T)                                                                          \
    T(Q4_0, q4_0)                                                                                  \
    T(Q4_1, q4_1)                                                                                  \
    T(Q5_0, q5_0)                                                                                  \
    T(Q5_1, q5_1)                                                                                  \
    T(Q8_0, q8_0)                                                                                  \
    T(Q2_K, q2_k)                                                                                  \
    T(Q3_K, q3_k)                                                                                  \
    T(Q4_K, q4_k)                                                                                  \
    T(Q5_K, q5_k)                                                                                  \
    T(Q6_K, q6_k)                                                                                  \
    T(IQ4_NL, iq4_nl)                                                                              \
    T(IQ4_XS, iq4_xs)                                                                              \
    T(IQ3_S, iq3_s)                                                                                \
    T(IQ3_XXS, iq3_xxs)                                                                            \
    T(IQ2_S, iq2_s)                                                                                \
    T(IQ2_XS, iq2_xs)                                                                              \
    T(IQ2_XXS, iq2_xxs)                                                                            \
    T(IQ1_M, iq1_m)                                                                                \
    T(IQ1_S, iq1_s)

#define WEIGHTED(NAME, name)                                                                       \
    void ggl_##name##_from_float_weighted(const float *src, const ggl_importance *of, void *dst,   \
                                          int64_t n);
QUANT_WEIGHTED(WEIGHTED)
#undef WEIGHTED

/* A row of the table of types. */
#define QUANT_TYPE_INFO(NAME, name_, block_, size_, row_, form_, text_, to_, from_, unpack_)       \
    {                                                                                              \
        .type = GGL_##NAME, .name = #name_, .text = text_, .block = block_, .size = size_,         \
        .row_meta = row_, .quantized = GGL_##form_ != GGL_PLAIN, .form = GGL_##form_,              \
        .to_float = to_, .from_float = from_, .unpack = unpack_                                    \
    }

/* Sets the scale of both halves, and no minimum. */
static inline void quant_scale(ggl_codes *c, float s) {
    c->s[0] = c->s[1] = s;
    c->m[0] = c->m[1] = 0.0f;
}

static inline void quant_scales(ggl_codes *c, float s0, float s1) {
    c->s[0] = s0;
    c->s[1] = s1;
    c->m[0] = c->m[1] = 0.0f;
}

/* Sets the scale and the minimum of both halves. */
static inline void quant_scale_min(ggl_codes *c, float s, float m) {
    c->s[0] = c->s[1] = s;
    c->m[0] = c->m[1] = m;
}

static inline uint32_t quant_u16(const uint8_t b[2]) {
    return (uint32_t)(b[0] | b[1] << 8);
}

static inline uint32_t quant_u32(const uint8_t b[4]) {
    return quant_u16(b) | quant_u16(b + 2) << 16;
}

static inline void quant_put_u16(uint8_t b[2], uint32_t u) {
    b[0] = (uint8_t)u;
    b[1] = (uint8_t)(u >> 8);
}

static inline void quant_put_u32(uint8_t b[4], uint32_t u) {
    quant_put_u16(b, u);
    quant_put_u16(b + 2, u >> 16);
}

/* Packs 32 codes as nibbles: code[j] in the low half of b[j], code[j + 16] in the high half. */
static inline void quant_put_nibbles(uint8_t b[16], const uint8_t code[32]) {
    for (int j = 0; j < 16; j++)
        b[j] = (uint8_t)(code[j] | code[j + 16] << 4);
}

static inline float quant_f16(const uint8_t d[2]) {
    return ggl_f16_to_f32((uint16_t)quant_u16(d));
}

/* Returns the scale of a row, which begins with `meta` bytes for it: an f16, an f32, or none, which is 1. */
static inline float quant_row_scale(size_t meta, const void *row) {
    float scale = 1.0f;
    if (meta == sizeof(uint16_t))
        return quant_f16(row);
    if (meta == sizeof scale)
        memcpy(&scale, row, sizeof scale);
    return scale;
}

static inline void quant_codes_to_float(const ggl_codes *c, float *dst) {
    for (int j = 0; j < 32; j++)
        dst[j] = c->s[j / 16] * (float)c->q[j] - c->m[j / 16];
}

/* Decodes n elements of a quantized type, from the beginning of a row, through its codes. meta: the bytes
 * before the row's blocks, a constant. */
static inline void quant_rows_to_float(void (*unpack)(const void *, int, ggl_codes *),
                                       int64_t block, size_t size, const size_t meta,
                                       const void *src, float *dst, int64_t n) {
    const char *p = (const char *)src + meta;
    const float scale = quant_row_scale(meta, src);
    for (int64_t i = 0; i < n; i += block, p += size)
        for (int k = 0; k < block / 32; k++, dst += 32) {
            ggl_codes c;
            unpack(p, k, &c);
            if (meta > 0)
                c.s[0] *= scale, c.s[1] *= scale;
            quant_codes_to_float(&c, dst);
        }
}

static inline void quant_put_f16(uint8_t d[2], float x) {
    uint16_t h = ggl_f32_to_f16(x);
    d[0] = (uint8_t)h;
    d[1] = (uint8_t)(h >> 8);
}

/* Returns the element of x[0..n) with the largest magnitude, the first of several; 0 if all are 0;
 * NaN if any element is not finite. */
static inline float quant_extreme(const float *x, int n) {
    float best = 0.0f, amax = 0.0f;
    for (int i = 0; i < n; i++) {
        float a = x[i] < 0.0f ? -x[i] : x[i];
        if (!(a <= 0x1.fffffep127f))
            return x[i] - x[i]; /* NaN, also for an infinity */
        if (a > amax) {
            amax = a;
            best = x[i];
        }
    }
    return best;
}

#endif
