/* Products of f32, f16 and bf16 weights: simd/products_tmpl.h in vectors of WebAssembly's SIMD. 4 rows x 4 columns
 * of a tile are 16 sums, as many as x86 has registers. */
#include "vector_simd128.h"

#include "../simd/products_tmpl.h"

void ggl_cpu_kernels_float_simd128(cpu_kernels *k) {
    fill_products(k);
}
