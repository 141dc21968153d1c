/* The codebooks ("grids") of the IQ types; private to ggml-lite and its backends. A vector of 8 or
 * 4 weights is an entry of the type's grid, given by its index, times a scale, with a sign for each
 * element:
 *
 *     grid             entries  elements  values
 *     ggl_iq2_xxs_grid     256         8  8 25 43
 *     ggl_iq2_xs_grid      512         8  8 25 43
 *     ggl_iq2_s_grid      1024         8  8 25 43
 *     ggl_iq3_xxs_grid     256         4  4 12 20 28 36 44 52 62
 *     ggl_iq3_s_grid       512         4  1 3 5 .. 15
 *     ggl_iq1_grid        2048         8  -1 0 1                    (iq1_s and iq1_m)
 *
 * An entry is stored as the packed indices of its elements' values in `level`: element j has `bits`
 * bits (2 or 3) from bit `bits * j` on.
 *
 *     int8_t q[8];
 *     iq_entry(&ggl_iq2_xs_grid, 511, q);
 *
 * This takes a quarter of the memory that bytes would, so that all grids stay in the L1 cache.
 * Kernels spread an entry to bytes with a multiplication (backends/cpu/quant/unpack_tmpl.h). */
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

/* Sets q[] to the elements of entry i < g->n. */
static inline void iq_entry(const iq_grid *g, unsigned i, int8_t *q) {
    unsigned code = g->code[i], mask = (1u << g->bits) - 1;
    for (int j = 0; j < g->width; j++, code >>= g->bits)
        q[j] = g->level[code & mask];
}

/* Returns the eight signs of a vector of iq2_xxs, iq2_xs or iq3_xxs from the 7 bits that are
 * stored: bit j is 1 if element j is negative, and the last bit makes the number of ones even. */
static inline unsigned iq_signs(unsigned bits7) {
    unsigned parity = bits7 ^ bits7 >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return bits7 | (parity & 1) << 7;
}

/* Negates the elements whose bit is set. Signs are nearly random, so this has no branch: ~q + 1. */
static inline void iq_apply_signs(int8_t q[8], unsigned signs) {
    for (int j = 0; j < 8; j++) {
        int minus = (int)(signs >> j & 1);
        q[j] = (int8_t)((q[j] ^ -minus) + minus);
    }
}

#endif
