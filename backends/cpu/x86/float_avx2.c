/* Products of f32, f16 and bf16 weights: simd/products_tmpl.h in registers of AVX2. 4 rows x 3 columns
 * of a tile are 12 registers: 7 loads for 12 products. */
#include "vector_avx2.h"

#include "../simd/products_tmpl.h"

void ggl_cpu_kernels_float_avx2(cpu_kernels *k) {
    fill_products(k);
}
