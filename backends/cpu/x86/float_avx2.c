/* Products of f32, f16 and bf16 weights: simd/products_tmpl.h in registers of AVX2. Rows as they are take 4 rows x 3 columns,
 * which are 12 registers: 7 loads for 12 products; panels take 2 vectors of rows x 6 columns: 8 loads. */
#include "vector_avx2.h"

#include "../simd/products_tmpl.h"

void ggl_cpu_kernels_float_avx2(cpu_kernels *k) {
    fill_products(k);
}
