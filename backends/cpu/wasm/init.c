/* The kernels for WebAssembly: one line for each file. */
#include "wasm.h"

#include "../cpu_features.h"

void ggl_cpu_kernels_init_wasm(cpu_kernels *k, uint32_t features) {
    if (!(features & CPU_SIMD128))
        return;
    ggl_cpu_kernels_elementwise_simd128(k);
    ggl_cpu_kernels_rows_simd128(k);
    ggl_cpu_kernels_recur_simd128(k);
    ggl_cpu_kernels_quantize_simd128(k);
    ggl_cpu_kernels_pairs_simd128(k);
    ggl_cpu_kernels_float_simd128(k);
    ggl_cpu_kernels_quant_simd128(k);
    ggl_cpu_kernels_attend_simd128(k);
    ggl_cpu_kernels_attend_codes_simd128(k);
}
