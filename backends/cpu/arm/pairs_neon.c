/* Products of gradients in bf16: simd/pairs_tmpl.h in registers of NEON. */
#include "vector_neon.h"

#include "../simd/pairs_tmpl.h"

void ggl_cpu_kernels_pairs_neon(cpu_kernels *k) {
    fill_pairs(k);
}
