/* Elementwise kernels: simd/elementwise.h in registers of NEON. */
#include "vector_neon.h"

#include "../simd/elementwise.h"

void ggl_cpu_kernels_elementwise_neon(cpu_kernels *k) {
    fill_elementwise(k);
}
