/* iq4_nl and iq4_xs: 4 bits choose one of 16 uneven steps, which are denser around zero, where most
 * weights are. Blocks: blocks.h. */
#include <math.h>

#include "quant.h"
#include "block_rows.h"
#include "search.h"

enum { RUN = 32, XS_BLOCK = 256, XS_RUNS = XS_BLOCK / RUN };

static const int8_t step[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};

static void unpack_codes(const uint8_t b[16], int8_t q[32]) {
    for (int j = 0; j < 16; j++) {
        q[j] = step[b[j] & 15];
        q[j + 16] = step[b[j] >> 4];
    }
}

static int get_scale(const struct block_iq4_xs *b, int r) {
    return (int)((b->sl[r / 2] >> 4 * (r % 2) & 15) | (quant_u16(b->sh) >> 2 * r & 3) << 4) - 32;
}

static void put_scale(struct block_iq4_xs *b, int r, int scale) {
    int v = scale + 32;
    b->sl[r / 2] |= (uint8_t)((v & 15) << 4 * (r % 2));
    b->sh[r / 4] |= (uint8_t)(v >> 4 << 2 * (r % 4));
}

void ggl_iq4_nl_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq4_nl *b = block;
    (void)k;
    quant_scale(out, quant_f16(b->d));
    unpack_codes(b->b, out->q);
}

void ggl_iq4_xs_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq4_xs *b = block;
    quant_scale(out, quant_f16(b->d) * (float)get_scale(b, k));
    unpack_codes(b->b + 16 * k, out->q);
}

/* Returns the index of the step nearest to x, the upper one of two equally near. */
static int nearest_step(float x) {
    if (x <= step[0])
        return 0;
    int i = 1;
    while (i < 15 && !(x < step[i]))
        i++;
    return x - step[i - 1] < step[i] - x ? i - 1 : i;
}

/* Sums over the steps q that are chosen for a run; errors are weighted by x^2. The best scale for
 * these steps is xq / q2. */
struct step_sums {
    float xq, q2;
};

static struct step_sums sums_for(const float *x, float inverse) {
    struct step_sums s = {0.0f, 0.0f};
    for (int j = 0; j < RUN; j++) {
        float q = step[nearest_step(inverse * x[j])], w = x[j] * x[j];
        s.xq += w * q * x[j];
        s.q2 += w * q * q;
    }
    return s;
}

/* Returns the best scale of a run. Tries the scale at which the extreme becomes the outermost step,
 * -127, and then the 15 at which it becomes -134 .. -120. */
static float fit_scale(const float *x) {
    float extreme = quant_extreme(x, RUN);
    if (fabsf(extreme) < QUANT_TINY)
        return 0.0f;
    struct step_sums s = sums_for(x, 1.0f / (-extreme / step[0]));
    float d = s.q2 > 0.0f ? s.xq / s.q2 : 0.0f, best = d * s.xq;
    for (int beside = -7; beside <= 7; beside++) {
        s = sums_for(x, (float)(beside + step[0]) / extreme);
        if (s.q2 > 0.0f && s.xq * s.xq > best * s.q2) {
            d = s.xq / s.q2;
            best = d * s.xq;
        }
    }
    return d;
}

static void put_codes(const float *x, float d, uint8_t b[16]) {
    uint8_t code[RUN];
    float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    for (int j = 0; j < RUN; j++)
        code[j] = (uint8_t)nearest_step(inverse * x[j]);
    quant_put_nibbles(b, code);
}

/* ggml's published encoder without an importance matrix (quantize_iq4_nl). Codes are chosen for d
 * before it is rounded to f16. */
void ggl_iq4_nl_from_float(const float *src, void *dst, int64_t n) {
    struct block_iq4_nl *b = dst;
    for (int64_t i = 0; i < n / RUN; i++, b++, src += RUN) {
        float nan = quant_extreme(src, RUN), d = isnan(nan) ? nan : fit_scale(src);
        quant_put_f16(b->d, d);
        put_codes(src, isnan(nan) ? 0.0f : d, b->b);
    }
}

/* ggml's published encoder without an importance matrix (quantize_iq4_xs). The scale largest in
 * magnitude becomes -32; codes are chosen for scales with d not yet rounded to f16. */
static void encode_xs(const float *x, struct block_iq4_xs *b) {
    float scale[XS_RUNS], extreme = 0.0f;
    for (int r = 0; r < XS_RUNS; r++) {
        scale[r] = fit_scale(x + RUN * r);
        extreme = fabsf(scale[r]) > fabsf(extreme) ? scale[r] : extreme;
    }
    float d = -extreme / 32.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
    quant_put_f16(b->d, d);
    for (int r = 0; r < XS_RUNS; r++) {
        int s = quant_clamp(quant_round(inverse * scale[r]), -32, 31);
        put_scale(b, r, s);
        put_codes(x + RUN * r, d * (float)s, b->b + 16 * r);
    }
}

void ggl_iq4_xs_from_float(const float *src, void *dst, int64_t n) {
    struct block_iq4_xs *b = dst;
    for (int64_t i = 0; i < n / XS_BLOCK; i++, b++, src += XS_BLOCK) {
        float extreme = quant_extreme(src, XS_BLOCK);
        *b = (struct block_iq4_xs){0};
        if (isnan(extreme))
            quant_put_f16(b->d, extreme);
        else
            encode_xs(src, b);
    }
}

/* --- with importance -------------------------------------------------------------------------- */

static void put_nl(const fit_rows *rows, int l, void *dst, int64_t block) {
    struct block_iq4_nl *b = (struct block_iq4_nl *)dst + block;
    quant_put_f16(b->d, rows->d[l]);
    quant_put_nibbles(b->b, rows->code + RUN * l);
}

void ggl_iq4_nl_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                    int64_t n) {
    static const fit_form form = {
        .n = RUN, .high = 15, .level = step, .first = -12, .step = 4, .n_steps = 14};
    ggl_fit_rows(ggl_fit_rows_scales, &form, src, of, n, put_nl, dst);
}

static void put_iq4_xs(const fit_block *fit, void *block) {
    struct block_iq4_xs *b = block;
    quant_put_f16(b->d, fit->d);
    for (int r = 0; r < XS_RUNS && !isnan(fit->d); r++) {
        put_scale(b, r, fit->scale[r]);
        quant_put_nibbles(b->b + 16 * r, fit->code + RUN * r);
    }
}

void ggl_iq4_xs_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                    int64_t n) {
    static const fit_form form = {.n = RUN,
                                  .high = 15,
                                  .level = step,
                                  .scale_low = -32,
                                  .scale_high = 31,
                                  .n_starts = 6,
                                  .first = -12,
                                  .step = 4,
                                  .n_steps = 14};
    ggl_fit_blocks(ggl_fit_scales, &form, src, of, n, sizeof(struct block_iq4_xs), put_iq4_xs, dst);
}
