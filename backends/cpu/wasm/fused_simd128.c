/* The slow path of fused_simd128.h: where a lane may have been rounded twice, the scalar function computes every lane. */
#include "fused_simd128.h"

fused4 ggl_cpu_fused_careful(fused4 a, fused4 b, fused4 c) {
    const fused_sums s = fused_begin((v128_t)a, (v128_t)b, (v128_t)c);
    if (!wasm_v128_any_true(wasm_v128_or(fused_middle(s), fused_small(s))))
        return (fused4)fused_end(s);
    for (int i = 0; i < 4; i++)
        c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}

void ggl_cpu_fused_careful_4(v128_t *c, const v128_t *a, const v128_t *b) {
    for (int i = 0; i < 4; i++)
        c[i] = (v128_t)ggl_cpu_fused_careful((fused4)a[i], (fused4)b[i], (fused4)c[i]);
}
