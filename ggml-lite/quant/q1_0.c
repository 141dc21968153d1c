/* q1_0: signs, with an f16 scale for each 128. Block: blocks.h. */
#include <math.h>
#include <string.h>

#include "quant.h"

enum { BLOCK = 128 };

void ggl_q1_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q1_0 *b = block;
    quant_scale(out, quant_f16(b->d));
    for (int j = 0; j < 32; j++)
        out->q[j] = b->b[4 * k + j / 8] >> j % 8 & 1 ? 1 : -1;
}

/* ggml's published encoder (quantize_row_q1_0_ref): d is the mean of |x|, added up in order. An
 * infinity makes the whole block infinite, NaN makes it NaN. */
void ggl_q1_0_from_float(const float *src, void *dst, int64_t n) {
    struct block_q1_0 *b = dst;
    for (int64_t i = 0; i < n / BLOCK; i++, b++, src += BLOCK) {
        float sum = 0.0f;
        memset(b->b, 0, sizeof b->b);
        for (int j = 0; j < BLOCK; j++) {
            sum += fabsf(src[j]);
            b->b[j / 8] |= (uint8_t)((src[j] >= 0.0f) << j % 8);
        }
        quant_put_f16(b->d, sum / BLOCK);
    }
}
