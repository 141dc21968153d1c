/* Elementwise kernels: simd/elementwise_tmpl.h in registers of AVX2. */
#include "vector_avx2.h"

#include "../simd/elementwise_tmpl.h"

void ggl_cpu_kernels_elementwise_avx2(cpu_kernels *k) {
    fill_elementwise(k);
}
