/* Products of gradients in bf16: simd/pairs_tmpl.h by the compiler's vectors. */
#include "vector_gnu.h"

#include "../simd/pairs_tmpl.h"

void ggl_cpu_kernels_pairs_vectors(cpu_kernels *k) {
    fill_pairs(k);
}
