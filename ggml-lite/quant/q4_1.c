/* q4_1: 4 bits, with an f16 scale and an f16 minimum for each 32. Block: blocks.h. */
#include "quant.h"
#include "block_rows.h"
#include "search.h"

enum { BLOCK = 32, HALF = BLOCK / 2, TOP = 15 };

void ggl_q4_1_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q4_1 *b = block;
    (void)k;
    quant_scale_min(out, quant_f16(b->d), -quant_f16(b->m));
    for (int j = 0; j < HALF; j++) {
        out->q[j] = (int8_t)(b->b[j] & 15);
        out->q[j + HALF] = (int8_t)(b->b[j] >> 4);
    }
}

/* ggml's published encoder (quantize_row_q4_1_ref): sixteen even steps from the smallest element to
 * the largest; q = (x - min)/d + 0.5 truncated, with d and min not yet rounded to f16. */
void ggl_q4_1_from_float(const float *src, void *dst, int64_t n) {
    struct block_q4_1 *b = dst;
    for (int64_t i = 0; i < n / BLOCK; i++, b++, src += BLOCK) {
        quant_steps s = ggl_quant_even_steps(src, BLOCK, TOP);
        uint8_t code[BLOCK];
        for (int j = 0; j < BLOCK; j++)
            code[j] = (uint8_t)quant_step_of(&s, src[j], TOP);
        quant_put_f16(b->d, s.d);
        quant_put_f16(b->m, s.min);
        quant_put_nibbles(b->b, code);
    }
}

static void put_row(const fit_rows *rows, int l, void *dst, int64_t block) {
    struct block_q4_1 *b = (struct block_q4_1 *)dst + block;
    quant_put_f16(b->d, rows->d[l]);
    quant_put_f16(b->m, rows->m[l]);
    quant_put_nibbles(b->b, rows->code + BLOCK * l);
}

void ggl_q4_1_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = {
        .n = BLOCK, .high = TOP, .first = -3.4f, .step = 0.25f, .n_steps = 22};
    ggl_fit_rows(ggl_fit_rows_mins, &form, src, of, n, put_row, dst);
}
