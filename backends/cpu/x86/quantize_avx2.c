/* Columns for bf16 and quantized weights: simd/quantize_tmpl.h in registers of AVX2. */
#include "vector_avx2.h"

#include "../simd/quantize_tmpl.h"

void ggl_cpu_kernels_quantize_avx2(cpu_kernels *k) {
    fill_quantize(k);
}
