/* arm/quant_sme.c with four outer products of floats in the place of one of bytes, for emulators that
 * compute that one wrongly. Sums of a block are whole numbers below 2^24, so they are the same. */

/* clang-format off */
/* Adds the products of a byte of each lane, which a shift by n moves to the top of its lane. */
#define OF_BYTE(t, d, e, n)     \
    I(lsl z12.s, z##d.s, n)     \
    I(lsl z13.s, z##e.s, n)     \
    I(asr z12.s, z12.s, 24)     \
    I(asr z13.s, z13.s, 24)     \
    I(scvtf z12.s, p0/m, z12.s) \
    I(scvtf z13.s, p0/m, z13.s) \
    FMOPA(t, 12, 13)
#define OUTER_PRODUCT(t, d, e) \
    OF_BYTE(t, d, e, 24) OF_BYTE(t, d, e, 16) OF_BYTE(t, d, e, 8) OF_BYTE(t, d, e, 0)
#define FLOAT(d)
/* clang-format on */

#define ggl_cpu_kernels_quant_sme test_kernels_quant_sme
#include "../../backends/cpu/arm/quant_sme.c"
