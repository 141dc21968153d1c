/* q4_0: 4 bits, symmetric around code 8, with an f16 scale for each 32. Block: blocks.h. */
#include <math.h>

#include "quant.h"
#include "block_rows.h"

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

/* Returns x * id + 8.5, truncated and clamped to 15. The sum is never negative, as |x * id| <= 8 up to
 * rounding. 16 would be the negative of the extreme, which has no code. */
static int q4_0_code(float x, float id) {
    int q = (int)(x * id + 8.5f);
    return q < 15 ? q : 15;
}

/* ggml's published encoder (quantize_row_q4_0_ref), because files must have the same bytes: d =
 * extreme / -8, where the extreme is the element largest in magnitude, with its sign; it gets code
 * 0, which is exactly -8 * d. Codes are chosen for d before it is rounded to f16. It leaves two
 * cases undefined: if 1/d overflows, codes are 8 here, which is zero; an infinity or NaN makes the
 * whole block NaN. */
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

static void put_row(const fit_rows *rows, int l, void *dst, int64_t block) {
    struct block_q4_0 *b = (struct block_q4_0 *)dst + block;
    quant_put_f16(b->d, rows->d[l]);
    quant_put_nibbles(b->b, rows->code + BLOCK * l);
}

void ggl_q4_0_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = {
        .n = BLOCK, .low = -8, .high = 7, .first = -0.9f, .step = 0.25f, .n_steps = 14};
    ggl_fit_rows(ggl_fit_rows_scales, &form, src, of, n, put_row, dst);
}
