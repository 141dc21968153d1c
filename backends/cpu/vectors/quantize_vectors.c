/* Columns for bf16 and quantized weights: simd/quantize_tmpl.h by the compiler's vectors. */
#include "vector_gnu.h"

#include "../simd/quantize_tmpl.h"

void ggl_cpu_kernels_quantize_vectors(cpu_kernels *k) {
    fill_quantize(k);
}
