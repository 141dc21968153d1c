/* Private to ggml-lite/quant: what the K types have in common. Their encoders all go the same way:
 * find a scale (and minimum) for each run; round these to small integers times one f16 number for
 * all 256; then choose the codes anew for the scales that came of it. A run whose scale has become
 * 0 keeps the codes of the first step. */
#ifndef GGL_K_QUANTS_H
#define GGL_K_QUANTS_H

#include <math.h>

#include "quant.h"
#include "search.h"

enum { K_BLOCK = 256 };

/* Codes of 2 bits in 64 bytes (struct block_q2_k): those of elements 32*k .. 32*k + 31. */
static inline unsigned quant_2bits(const uint8_t b[64], int k, int j) {
    return b[32 * (k / 4) + j] >> 2 * (k % 4) & 3;
}

static inline void quant_put_2bits(uint8_t b[64], const uint8_t code[K_BLOCK]) {
    for (int half = 0; half < 2; half++, code += 128, b += 32)
        for (int j = 0; j < 32; j++)
            b[j] = (uint8_t)(code[j] | code[j + 32] << 2 | code[j + 64] << 4 | code[j + 96] << 6);
}

/* The codes of n elements for scale d and minimum m; as they are if d is 0. */
static inline void quant_codes_for(const float *x, int n, float d, float m, int low, int high,
                                   uint8_t *code) {
    for (int i = 0; i < n && d != 0.0f; i++)
        code[i] = (uint8_t)(quant_clamp(quant_round((x[i] + m) / d), low, high) - low);
}

#endif
