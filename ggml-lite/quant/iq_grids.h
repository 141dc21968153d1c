/* Private to ggml-lite and its backends: the codebooks ("grids") of the IQ types. A vector of 8 or
 * 4 weights is the index of an entry of its type's grid, times a scale, with signs of its own:
 *
 *     grid             entries  elements  values
 *     ggl_iq2_xxs_grid     256         8  8 25 43
 *     ggl_iq2_xs_grid      512         8  8 25 43
 *     ggl_iq2_s_grid      1024         8  8 25 43
 *     ggl_iq3_xxs_grid     256         4  4 12 20 28 36 44 52 62
 *     ggl_iq3_s_grid       512         4  1 3 5 .. 15
 *     ggl_iq1_grid        2048         8  -1 0 1                    (iq1_s and iq1_m)
 *
 * An entry is stored as the places of its elements' values in `level`, packed: element j has `bits`
 * bits, 2 or 3, from bit `bits * j` on.
 *
 *     int8_t q[8];
 *     iq_entry(&ggl_iq2_xs_grid, 511, q);
 *
 * The places take a quarter of the room that bytes would, so that all grids stay in the inner cache;
 * kernels spread them out with a multiplication (backends/cpu/quant/unpack.h). */
#ifndef GGL_IQ_GRIDS_H
#define GGL_IQ_GRIDS_H

#include <stdint.h>

typedef struct iq_grid {
    const uint16_t *code;
    int n, width, bits; /* entries, elements of each, bits of an element */
    int8_t level[8];
} iq_grid;

extern const iq_grid ggl_iq2_xxs_grid, ggl_iq2_xs_grid, ggl_iq2_s_grid, ggl_iq3_xxs_grid,
    ggl_iq3_s_grid, ggl_iq1_grid;

/* The elements of entry i < g->n. */
static inline void iq_entry(const iq_grid *g, unsigned i, int8_t *q) {
    unsigned code = g->code[i], mask = (1u << g->bits) - 1;
    for (int j = 0; j < g->width; j++, code >>= g->bits)
        q[j] = g->level[code & mask];
}

/* The eight signs of iq2_xxs, iq2_xs and iq3_xxs take 7 bits: bit j is that of element j (1:
 * minus), and the last is such that their number is even. */
static inline unsigned iq_signs(unsigned bits7) {
    unsigned parity = bits7 ^ bits7 >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return bits7 | (parity & 1) << 7;
}

/* Signs are as good as random, so without a branch: ~q + 1 where the bit is set. */
static inline void iq_apply_signs(int8_t q[8], unsigned signs) {
    for (int j = 0; j < 8; j++) {
        int minus = (int)(signs >> j & 1);
        q[j] = (int8_t)((q[j] ^ -minus) + minus);
    }
}

#endif
