/* Products of quantized weights with many columns, by the outer products of SME.
 *
 * smopa takes two vectors of lanes of 4 signed bytes. To each element (c, r) of a tile it adds the
 * product of lane c of the first with lane r of the second: four products of bytes. The lanes of the
 * first are columns, those of the second are rows of weights; so slice c of a tile has the sums of
 * column c, a lane for each row. A tile has as many columns as a vector has rows.
 *
 * Products run one block ahead of the chains, in other tiles, so that no chain waits for its sums. */
#include "sme_words.h"

/* clang-format off */
/* A test, for emulators that compute smopa wrongly, has its own OUTER_PRODUCT, which may use z12 to
 * z15, and FLOAT, which makes floats of sums. */
#ifndef OUTER_PRODUCT
#define OUTER_PRODUCT SMOPA
#define FLOAT(d) I(scvtf z##d.s, p0/m, z##d.s)
#endif

/* Adds 4 elements of each column and row to tile t. d, e: registers for columns and weights. */
#define STEP(t, d, e, ...)                    \
    I(ld1w {z##d.s}, p0/z, [x16 __VA_ARGS__]) \
    I(ld1w {z##e.s}, p0/z, [x17 __VA_ARGS__]) \
    OUTER_PRODUCT(t, d, e)
#define FIRST_HALF(t)          \
    STEP(t, 0, 1, )            \
    STEP(t, 2, 3, , x1, lsl 2) \
    STEP(t, 4, 5, , x2, lsl 2) \
    STEP(t, 6, 7, , x3, lsl 2)
#define SECOND_HALF(t)         \
    STEP(t, 0, 1, , x4, lsl 2) \
    STEP(t, 2, 3, , x5, lsl 2) \
    STEP(t, 4, 5, , x6, lsl 2) \
    STEP(t, 6, 7, , x7, lsl 2)

/* Sets tile t to the sums of the next block; or t and u to those of its halves. */
#define SUMS(t, u) \
    ZERO_TILES(t, t) FIRST_HALF(t) SECOND_HALF(t) NEXT_SUMS
#define SUMS_OF_HALVES(t, u) \
    ZERO_TILES(t, u) FIRST_HALF(t) SECOND_HALF(u) NEXT_SUMS
#define NEXT_SUMS \
    I(add x16, x16, %[x_size]) I(add x17, x17, %[w_size])

/* Moves slices of tile t, from slice w on. */
#define FOUR_SUMS(d, e, f, g, t, w) \
    MOVA(d, t, w, 0)                \
    MOVA(e, t, w, 1)                \
    MOVA(f, t, w, 2)                \
    MOVA(g, t, w, 3)                \
    FLOAT(d) FLOAT(e) FLOAT(f) FLOAT(g)
#define FIRST_SUMS FOUR_SUMS
#define SECOND_SUMS FOUR_SUMS
#define THIS_BLOCK
#define NEXT_FOUR
#define NEXT_BLOCK
#define MOST_FOURS I(lsr x11, x8, 4)

/* A program may call with sums of its own in ZA, and a block at TPIDR2_EL0 that says where they are
 * to be saved by who needs ZA (the lazy saving of ARM's procedure call standard). */
#define SAVE_ZA_OF_CALLER                                                     \
    I(mrs x16, s3_3_c13_c0_5)   /* TPIDR2_EL0 */                              \
    I(cbz x16, 2f)                                                            \
    SMSTART_SM                                                                \
    I(ldr x17, [x16])           /* the place */                               \
    I(ldrh w19, [x16, 8])      /* how many slices */                          \
    I(mov w12, 0)                                                             \
    I(cbz x17, 1f)                                                            \
    I(0:)                                                                     \
    I(cmp w12, w19)                                                           \
    I(b.hs 1f)                                                                \
    STR_ZA_X17                                                                \
    I(addvl x17, x17, 1)       /* the length of a vector in streaming mode */ \
    I(add w12, w12, 1)                                                        \
    I(b 0b)                                                                   \
    I(1:)                                                                     \
    I(msr s3_3_c13_c0_5, xzr)   /* tells the caller that they were saved */   \
    I(2:)

#define BEGIN SAVE_ZA_OF_CALLER SMSTART
#define END SMSTOP
/* clang-format on */

#include "panel_sve.h"

void ggl_cpu_kernels_quant_sme(cpu_kernels *k) {
    set_panels(k);
}
