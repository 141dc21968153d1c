/* Functions that the K types share; private to ggml-lite/quant. All their encoders have three
 * steps: find a scale (and a minimum) for each run; round these to small integers times one f16
 * number for all 256 elements; choose the codes again for the rounded scales. A run whose scale is
 * rounded to 0 keeps the codes of the first step. */
#ifndef GGL_K_QUANTS_H
#define GGL_K_QUANTS_H

#include <math.h>
#include <string.h>

#include "quant.h"
#include "search.h"

enum { K_BLOCK = 256 };

/* Encodes n / K_BLOCK blocks of `size` bytes, which `encode` gets as zeros. d_at: where a block has its f16 scale. A
 * block with a NaN gets a NaN there and zeros elsewhere, so that all its elements are NaN. */
static inline void quant_k_blocks(const float *src, void *dst, int64_t n, size_t size, size_t d_at,
                                  void (*encode)(const float *x, void *block)) {
    uint8_t *b = dst;
    for (int64_t i = 0; i < n / K_BLOCK; i++, b += size, src += K_BLOCK) {
        const float extreme = quant_extreme(src, K_BLOCK);
        memset(b, 0, size);
        if (isnan(extreme))
            quant_put_f16(b + d_at, extreme);
        else
            encode(src, b);
    }
}

/* Returns the 2-bit code of element 32*k + j, in 64 bytes as in struct block_q2_k. */
static inline unsigned quant_2bits(const uint8_t b[64], int k, int j) {
    return b[32 * (k / 4) + j] >> 2 * (k % 4) & 3;
}

static inline void quant_put_2bits(uint8_t b[64], const uint8_t code[K_BLOCK]) {
    for (int half = 0; half < 2; half++, code += 128, b += 32)
        for (int j = 0; j < 32; j++)
            b[j] = (uint8_t)(code[j] | code[j + 32] << 2 | code[j + 64] << 4 | code[j + 96] << 6);
}

/* Sets the codes of n elements for scale d and minimum m; leaves them unchanged if d is 0. */
static inline void quant_codes_for(const float *x, int n, float d, float m, int low, int high,
                                   uint8_t *code) {
    if (d == 0.0f)
        return;
    for (int i = 0; i < n; i++)
        code[i] = (uint8_t)(quant_clamp(quant_round((x[i] + m) / d), low, high) - low);
}

#endif
