/* Elementwise kernels: simd/elementwise.h in registers of AVX-512. */
#include "vector_avx512.h"

#include "../simd/elementwise.h"

void ggl_cpu_kernels_elementwise_avx512(cpu_kernels *k) {
    fill_elementwise(k);
}
