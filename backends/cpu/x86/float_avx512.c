/* Products of f32, f16 and bf16 weights: simd/products_tmpl.h in registers of AVX-512. 4 rows x 6
 * columns of a tile are 24 registers: 10 loads for 24 products. */
#include "vector_avx512.h"

#include "../simd/products_tmpl.h"

void ggl_cpu_kernels_float_avx512(cpu_kernels *k) {
    fill_products(k);
}
