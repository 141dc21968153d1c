/* Products of gradients in bf16: simd/pairs_tmpl.h in registers of NEON, by pairs. */
#define V_PAIRS
#include "vector_neon.h"

#include "../simd/pairs_tmpl.h"

void ggl_cpu_kernels_pairs_bf16(cpu_kernels *k) {
    fill_pairs(k);
}
