/* Elementwise kernels: simd/elementwise_tmpl.h in vectors of WebAssembly's SIMD. */
#include "vector_simd128.h"

#include "../simd/elementwise_tmpl.h"

void ggl_cpu_kernels_elementwise_simd128(cpu_kernels *k) {
    fill_elementwise(k);
}
