/* Products of gradients in bf16: simd/pairs_tmpl.h in registers of AVX-512. */
#include "vector_avx512.h"

#include "../simd/pairs_tmpl.h"

void ggl_cpu_kernels_pairs_avx512(cpu_kernels *k) {
    fill_pairs(k);
}
