/* q8_0: 8 bits, symmetric, with an f16 scale for each 32. Block: blocks.h. */
#include <math.h>
#include <string.h>

#include "block_rows.h"
#include "quant.h"

enum { BLOCK = 32, TOP = 127 };

void ggl_q8_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q8_0 *b = block;
    (void)k;
    quant_scale(out, quant_f16(b->d));
    memcpy(out->q, b->q, BLOCK);
}

/* ggml's published encoder (quantize_row_q8_0_ref), because files must have the same bytes:
 * d = max|x| / 127; q = round(x * (1/d)), half away from zero, with d not yet rounded to f16. It
 * leaves two cases undefined: if 1/d overflows (all |x| below about 2^-121), codes are 0 here; an
 * infinity or NaN makes the whole block NaN, so that it cannot go unnoticed. */
void ggl_q8_0_from_float(const float *src, void *dst, int64_t n) {
    struct block_q8_0 *b = dst;
    for (int64_t i = 0; i < n / BLOCK; i++, b++, src += BLOCK) {
        float d = fabsf(quant_extreme(src, BLOCK)) / 127.0f;
        float id = d != 0.0f ? 1.0f / d : 0.0f;
        if (!isfinite(id))
            id = 0.0f;
        quant_put_f16(b->d, d);
        for (int j = 0; j < BLOCK; j++)
            b->q[j] = isnan(d) ? 0 : (int8_t)roundf(src[j] * id);
    }
}

static void put_row(const fit_rows *rows, int l, void *dst, int64_t block) {
    struct block_q8_0 *b = (struct block_q8_0 *)dst + block;
    quant_put_f16(b->d, rows->d[l]);
    for (int j = 0; j < BLOCK; j++)
        b->q[j] = (int8_t)(rows->code[BLOCK * l + j] - TOP);
}

/* Code -128 stays unused: programs that multiply signed bytes by magnitudes and signs cannot hold its negative. */
void ggl_q8_0_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = {
        .n = BLOCK, .low = -TOP, .high = TOP, .first = -4.0f, .step = 0.33f, .n_steps = 14};
    ggl_fit_rows(ggl_fit_rows_scales, &form, src, of, n, put_row, dst);
}
