/* q4_0: 4 bits around a middle of 8, one f16 scale per 32. Block: quant.h. */
#include <math.h>

#include "quant.h"

enum { BLOCK = 32, HALF = BLOCK / 2 };

void ggl_q4_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q4_0 *b = block;
    (void)k;
    quant_scale(out, quant_f16(b->d));
    for (int j = 0; j < HALF; j++) {
        out->q[j] = (int8_t)((b->b[j] & 15) - 8);
        out->q[j + HALF] = (int8_t)((b->b[j] >> 4) - 8);
    }
}

/* x * id + 8.5, cut to 0..15. The sum is never negative (|x * id| <= 8 and a rounding); 16 is cut:
 * it is the opposite of the extreme, for which the codes have no room. */
static int q4_0_code(float x, float id) {
    int q = (int)(x * id + 8.5f);
    return q < 15 ? q : 15;
}

/* d = extreme / -8, where the extreme is the element largest in magnitude with its sign: it becomes
 * code 0, exactly -8 * d. Codes come from d before it is rounded to f16: that is ggml's published
 * encoder (quantize_row_q4_0_ref), and files must agree byte for byte. What it leaves undefined:
 * where 1/d overflows codes are 8, which is zero; an infinity or NaN makes the whole block NaN. */
void ggl_q4_0_from_float(const float *src, void *dst, int64_t n) {
    struct block_q4_0 *b = dst;
    for (int64_t i = 0; i < n / BLOCK; i++, b++, src += BLOCK) {
        float d = quant_extreme(src, BLOCK) / -8.0f;
        float id = d != 0.0f ? 1.0f / d : 0.0f;
        quant_put_f16(b->d, d);
        for (int j = 0; j < HALF; j++) {
            int low = 8, high = 8;
            if (isfinite(id)) {
                low = q4_0_code(src[j], id);
                high = q4_0_code(src[j + HALF], id);
            }
            b->b[j] = (uint8_t)(low | high << 4);
        }
    }
}
