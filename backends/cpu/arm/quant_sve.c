/* Products of quantized weights with many columns, by the dot products of SVE. A lane is a row of weights.
 * Four columns lie in each 128 bits of a register, and an instruction multiplies with one of them. */

/* clang-format off */
/* Adds 4 elements of four columns to the sums d .. g. i, j: registers for weights and columns. */
#define STEP(d, e, f, g, i, j, ...)             \
    I(ld1w {z##i.s}, p0/z, [x17 __VA_ARGS__])   \
    I(ld1rqw {z##j.s}, p0/z, [x22 __VA_ARGS__]) \
    I(sdot z##d.s, z##i.b, z##j.b[0])           \
    I(sdot z##e.s, z##i.b, z##j.b[1])           \
    I(sdot z##f.s, z##i.b, z##j.b[2])           \
    I(sdot z##g.s, z##i.b, z##j.b[3])
#define ZERO(d, e, f, g) \
    I(mov z##d.s, 0) I(mov z##e.s, 0) I(mov z##f.s, 0) I(mov z##g.s, 0)
#define FIRST_STEPS(d, e, f, g)         \
    STEP(d, e, f, g, 3, 1, )            \
    STEP(d, e, f, g, 0, 2, , x1, lsl 2) \
    STEP(d, e, f, g, 3, 1, , x2, lsl 2) \
    STEP(d, e, f, g, 0, 2, , x3, lsl 2)
#define SECOND_STEPS(d, e, f, g)        \
    STEP(d, e, f, g, 3, 1, , x4, lsl 2) \
    STEP(d, e, f, g, 0, 2, , x5, lsl 2) \
    STEP(d, e, f, g, 3, 1, , x6, lsl 2) \
    STEP(d, e, f, g, 0, 2, , x7, lsl 2)
#define FLOATS(d, e, f, g)                                      \
    I(scvtf z##d.s, p0/m, z##d.s) I(scvtf z##e.s, p0/m, z##e.s) \
    I(scvtf z##f.s, p0/m, z##f.s) I(scvtf z##g.s, p0/m, z##g.s)

#define SUMS(t, u)
#define SUMS_OF_HALVES(t, u)
#define FOUR_SUMS(d, e, f, g, t, w) \
    ZERO(d, e, f, g) FIRST_STEPS(d, e, f, g) SECOND_STEPS(d, e, f, g) FLOATS(d, e, f, g)
#define FIRST_SUMS(d, e, f, g, t, w) ZERO(d, e, f, g) FIRST_STEPS(d, e, f, g) FLOATS(d, e, f, g)
#define SECOND_SUMS(d, e, f, g, t, w) ZERO(d, e, f, g) SECOND_STEPS(d, e, f, g) FLOATS(d, e, f, g)
#define THIS_BLOCK I(mov x22, x16)
#define NEXT_FOUR I(add x22, x22, 16)
#define NEXT_BLOCK I(add x16, x16, %[x_size]) I(add x17, x17, %[w_size])
#define MOST_FOURS I(mov x11, 4)
#define BEGIN
#define END
/* clang-format on */

#include "panel_sve.h"

void ggl_cpu_kernels_quant_sve(cpu_kernels *k) {
    set_panels(k);
}
