/* Columns for bf16 and quantized weights: simd/quantize_tmpl.h in registers of NEON. */
#include "vector_neon.h"

#include "../simd/quantize_tmpl.h"

void ggl_cpu_kernels_quantize_neon(cpu_kernels *k) {
    fill_quantize(k);
}
