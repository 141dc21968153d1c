/* Private to ggml-lite: every type's two directions (types.def names them), and the blocks of the
 * quantized types. Blocks hold bytes only, so that a block may lie at any address. */
#ifndef GGL_QUANT_H
#define GGL_QUANT_H

#include "ggl/types.h"

#define PLAIN(id, NAME, name, size, text)                                                          \
    void ggl_##name##_to_float(const void *src, float *dst, int64_t n);                            \
    void ggl_##name##_from_float(const float *src, void *dst, int64_t n);
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    void ggl_##name##_unpack(const void *block_, int k, ggl_codes *out);                           \
    void ggl_##name##_from_float(const float *src, void *dst, int64_t n);
#define QUANT_READ(id, NAME, name, block, size, form, text)                                        \
    void ggl_##name##_unpack(const void *block_, int k, ggl_codes *out);
#include "ggl/types.def"

/* q8_0, 32 elements in 34 bytes:  | d: f16 | q[0] q[1] ... q[31]: i8 |    x[i] = d * q[i] */
struct block_q8_0 {
    uint8_t d[2]; /* little-endian, as all of GGUF */
    int8_t q[32];
};
_Static_assert(sizeof(struct block_q8_0) == 34, "8.5 bits per weight");

/* q4_0, 32 elements in 18 bytes:  | d: f16 | b[0] ... b[15] |
 *     b[i] = | element i + 16: high 4 bits | element i: low 4 bits |     x = d * (nibble - 8) */
struct block_q4_0 {
    uint8_t d[2];
    uint8_t b[16];
};
_Static_assert(sizeof(struct block_q4_0) == 18, "4.5 bits per weight");

/* The same scale for both halves, no minimum. */
static inline void quant_scale(ggl_codes *c, float s) {
    c->s[0] = c->s[1] = s;
    c->m[0] = c->m[1] = 0.0f;
}

static inline float quant_f16(const uint8_t d[2]) {
    return ggl_f16_to_f32((uint16_t)(d[0] | d[1] << 8));
}

static inline void quant_put_f16(uint8_t d[2], float x) {
    uint16_t h = ggl_f32_to_f16(x);
    d[0] = (uint8_t)h;
    d[1] = (uint8_t)(h >> 8);
}

/* The element largest in magnitude of x[0..n), with its sign (the first of equals); 0 for all
 * zeros. NaN if any element is no finite number. */
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
