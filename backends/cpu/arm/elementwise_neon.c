/* Elementwise kernels: simd/elementwise_tmpl.h in registers of NEON. */
#include "vector_neon.h"

#include "../simd/elementwise_tmpl.h"

void ggl_cpu_kernels_elementwise_neon(cpu_kernels *k) {
    fill_elementwise(k);
}
