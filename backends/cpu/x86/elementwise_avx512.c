/* Elementwise kernels: simd/elementwise_tmpl.h in registers of AVX-512. */
#include "vector_avx512.h"

#include "../simd/elementwise_tmpl.h"

void ggl_cpu_kernels_elementwise_avx512(cpu_kernels *k) {
    fill_elementwise(k);
}
