/* Columns for bf16 and quantized weights: simd/quantize_tmpl.h in vectors of WebAssembly's SIMD. */
#include "vector_simd128.h"

#include "../simd/quantize_tmpl.h"

void ggl_cpu_kernels_quantize_simd128(cpu_kernels *k) {
    fill_quantize(k);
}
