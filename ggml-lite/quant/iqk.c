/* The types of ik_llama.cpp: codes choose one of a few uneven steps, of which there are two kinds, the second a little
 * higher ("shifted"). Blocks: blocks.h. */
#include "iqk.h"

#include "k_quants.h"

/* The steps of codes of 2 to 6 bits; in iq2_kl, too, codes of 3 bits. */
static const int8_t steps2[4] = {-31, -13, 1, 17}, steps3[8] = {-63, -40, -23, -10, 1, 13, 28, 47},
                    steps4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113},
                    steps5[32] = {-126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36,
                                  -30,  -24,  -18,  -12, -6,  -1,  5,   11,  17,  23,  29,
                                  36,   43,   51,   59,  68,  77,  87,  97,  109, 121};
enum { SHIFT2 = 5, SHIFT3 = 4, SHIFT4 = 4, SHIFT5 = 2, SHIFT6 = 1 };

const int8_t ggl_iq6_k_steps[64] = {
    -127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66, -62, -58, -54,
    -51,  -47,  -44,  -40,  -37,  -34, -31, -28, -25, -22, -19, -16, -13, -11, -8,  -5,
    -2,   0,    3,    6,    9,    12,  14,  17,  20,  23,  27,  30,  33,  36,  40,  44,
    47,   51,   55,   59,   63,   68,  72,  77,  82,  87,  92,  98,  103, 109, 115, 121};

const uint8_t ggl_iq2_kl_pairs[32][2] = {
    {0, 2}, {0, 5}, {1, 0}, {1, 3}, {1, 5}, {1, 7}, {2, 1}, {2, 2}, {2, 4}, {2, 5}, {2, 6},
    {3, 0}, {3, 4}, {3, 5}, {3, 7}, {4, 2}, {4, 3}, {4, 4}, {4, 5}, {4, 6}, {5, 1}, {5, 2},
    {5, 3}, {5, 4}, {5, 5}, {6, 0}, {6, 2}, {6, 4}, {6, 6}, {6, 7}, {7, 2}, {7, 5}};

/* Returns half r % 2 of b[r / 2]. */
static int half_of(const uint8_t *b, int r) {
    return b[r / 2] >> 4 * (r % 2) & 15;
}

/* Returns bit r of the two bytes. */
static int bit_of(const uint8_t b[2], int r) {
    return (int)(quant_u16(b) >> r & 1);
}

/* The low 4 bits of element 32*k + j: halves of 32 bytes for two runs. */
static int low4(const uint8_t *b, int k, int j) {
    return b[32 * (k / 2) + j] >> 4 * (k % 2) & 15;
}

/* Element i of 16 bytes of nibbles. */
static int nibble(const uint8_t *b, int i) {
    return b[i % 16] >> 4 * (i / 16) & 15;
}

/* Sets the steps of a run of 32 with one shift, or with one for each half. */
static void put_steps(ggl_codes *out, const int8_t *steps, const uint8_t code[32], int shift0,
                      int shift1) {
    for (int j = 0; j < 32; j++)
        out->q[j] = (int8_t)(steps[code[j]] + (j < 16 ? shift0 : shift1));
}

void ggl_q6_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q6_0 *b = block;
    (void)k;
    quant_scale(out, quant_f16(b->d));
    for (int j = 0; j < 32; j++) {
        const int high = b->h[j % 8] >> (4 * (j / 8 % 2) + 2 * (j / 16)) & 3;
        out->q[j] = (int8_t)((nibble(b->b, j) | high << 4) - 32);
    }
}

void ggl_iq2_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq2_k *b = block;
    const float d = quant_f16(b->d);
    uint8_t code[32];
    quant_scales(out, d * (float)(half_of(b->s, 2 * k) - 8),
                 d * (float)(half_of(b->s, 2 * k + 1) - 8));
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)quant_2bits(b->b, k, j);
    put_steps(out, steps2, code, SHIFT2 * bit_of(b->shifts, 2 * k),
              SHIFT2 * bit_of(b->shifts, 2 * k + 1));
}

static float scale3(const struct block_iq3_k *b, int r) {
    const float s = (float)(2 * half_of(b->s, r) + 1);
    return bit_of(b->minus, r) ? -s : s;
}

void ggl_iq3_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq3_k *b = block;
    const float d = quant_f16(b->d);
    uint8_t code[32];
    quant_scales(out, d * scale3(b, 2 * k), d * scale3(b, 2 * k + 1));
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)(quant_2bits(b->b, k, j) | (b->h[j] >> k & 1) << 2);
    put_steps(out, steps3, code, SHIFT3 * bit_of(b->shifts, 2 * k),
              SHIFT3 * bit_of(b->shifts, 2 * k + 1));
}

/* The scale of run r of 16, of iq4_k and iq5_k. */
static float scale6(const uint8_t *sh, const uint8_t *sl, int r) {
    return (float)((half_of(sl, r) | (sh[r / 4] >> 2 * (r % 4) & 3) << 4) - 32);
}

void ggl_iq4_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq4_k *b = block;
    const float d = quant_f16(b->d);
    uint8_t code[32];
    quant_scales(out, d * scale6(b->sh, b->sl, 2 * k), d * scale6(b->sh, b->sl, 2 * k + 1));
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)nibble(b->b + 16 * k, j);
    put_steps(out, steps4, code, SHIFT4 * bit_of(b->shifts, 2 * k),
              SHIFT4 * bit_of(b->shifts, 2 * k + 1));
}

void ggl_iq5_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq5_k *b = block;
    const float d = quant_f16(b->d);
    uint8_t code[32];
    quant_scales(out, d * scale6(b->sh, b->sl, 2 * k), d * scale6(b->sh, b->sl, 2 * k + 1));
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)(low4(b->b, k, j) | (b->h[j] >> k & 1) << 4);
    put_steps(out, steps5, code, SHIFT5 * bit_of(b->shifts, 2 * k),
              SHIFT5 * bit_of(b->shifts, 2 * k + 1));
}

void ggl_iq6_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq6_k *b = block;
    const float d = quant_f16(b->d);
    uint8_t code[32];
    quant_scales(out, d * (float)b->s[2 * k], d * (float)b->s[2 * k + 1]);
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)(low4(b->b, k, j) | quant_2bits(b->h, k, j) << 4);
    put_steps(out, ggl_iq6_k_steps, code, SHIFT6 * bit_of(b->shifts, 2 * k),
              SHIFT6 * bit_of(b->shifts, 2 * k + 1));
}

/* Sets the scale and the steps of a run whose byte s has both a scale and a shift. */
static void put_ks(ggl_codes *out, int s, const int8_t *steps, const uint8_t code[32], int shift) {
    quant_scale(out, (float)((s & 254) - 127));
    shift *= s & 1;
    put_steps(out, steps, code, shift, shift);
}

void ggl_iq4_ks_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq4_ks *b = block;
    uint8_t code[32];
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)nibble(b->b + 16 * k, j);
    put_ks(out, b->s[k], steps4, code, SHIFT4);
}

void ggl_iq5_ks_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq5_ks *b = block;
    uint8_t code[32];
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)(low4(b->b, k, j) | (b->h[j] >> k & 1) << 4);
    put_ks(out, b->s[k], steps5, code, SHIFT5);
}

void ggl_iq4_kss_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq4_kss *b = block;
    uint8_t bytes[16], code[32];
    int s = 0;
    for (int i = 0; i < 8; i++) {
        const uint32_t w = quant_u16(b->w[k][i]), v = w & 0xfffe;
        s |= (int)(w & 1) << i;
        quant_put_u16(bytes + 2 * i, v ^ v >> 1);
    }
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)nibble(bytes, j);
    put_ks(out, s, steps4, code, SHIFT4);
}

void ggl_iq2_ks_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq2_ks *b = block;
    const int shift = SHIFT2 * bit_of(b->x, k);
    uint8_t code[32];
    quant_scale(out, (float)((half_of(b->s, k) | bit_of(b->x, 8 + k) << 4) - 16));
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)quant_2bits(b->b, k, j);
    put_steps(out, steps2, code, shift, shift);
}

void ggl_iq3_ks_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq3_ks *b = block;
    const int shift = SHIFT3 * bit_of(b->x, 8 + k);
    uint8_t code[32];
    quant_scale(out, (float)(((b->s[k % 4] >> 4 * (k / 4) & 15) | bit_of(b->x, k) << 4) - 16));
    for (int j = 0; j < 32; j++)
        code[j] = (uint8_t)(quant_2bits(b->b, k, j) | (b->h[j] >> k & 1) << 2);
    put_steps(out, steps3, code, shift, shift);
}

void ggl_iq2_kl_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq2_kl *b = block;
    uint8_t code[32];
    quant_scale(out, (float)(((b->sl[k % 4] >> 4 * (k / 4) & 15) |
                              (int)(quant_u16(b->sh) >> 2 * k & 3) << 4) -
                             32));
    for (int j = 0; j < 16; j++)
        memcpy(code + 2 * j,
               ggl_iq2_kl_pairs[(b->b[16 * (k / 2) + j] >> 4 * (k % 2) & 15) | (b->h[j] >> k & 1)
                                                                                   << 4],
               2);
    put_steps(out, steps3, code, 0, 0);
}
