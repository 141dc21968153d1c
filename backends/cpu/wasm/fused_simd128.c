/* What fused_simd128.h needs rarely. Most often a sum is 0, which is exact (no other one has only zeros in its upper half). If it is not that,
 * the scalar function computes each lane. */
#include "fused_simd128.h"

fused4 ggl_cpu_fused_careful(fused4 a, fused4 b, fused4 c) {
    const fused_sums s = fused_begin((v128_t)a, (v128_t)b, (v128_t)c);
    const v128_t y = fused_end(s),
                 upper = fused_size(wasm_i32x4_shuffle(s.low, s.high, 1, 3, 5, 7));
    const v128_t inexact = wasm_v128_andnot(fused_tiny(fused_size(y)),
                                            wasm_i32x4_eq(upper, wasm_i32x4_const_splat(0)));
    if (!wasm_v128_any_true(wasm_v128_or(fused_middle(s), inexact)))
        return (fused4)y;
    for (int i = 0; i < 4; i++)
        c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}

void ggl_cpu_fused_careful_4(v128_t *c, const v128_t *a, const v128_t *b) {
    for (int i = 0; i < 4; i++)
        c[i] = (v128_t)ggl_cpu_fused_careful((fused4)a[i], (fused4)b[i], (fused4)c[i]);
}
