/* Products of gradients in bf16: simd/pairs_tmpl.h in vectors of WebAssembly's SIMD. */
#include "vector_simd128.h"

#include "../simd/pairs_tmpl.h"

void ggl_cpu_kernels_pairs_simd128(cpu_kernels *k) {
    fill_pairs(k);
}
