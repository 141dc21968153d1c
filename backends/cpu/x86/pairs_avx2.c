/* Products of gradients in bf16: simd/pairs_tmpl.h in registers of AVX2. */
#include "vector_avx2.h"

#include "../simd/pairs_tmpl.h"

void ggl_cpu_kernels_pairs_avx2(cpu_kernels *k) {
    fill_pairs(k);
}
