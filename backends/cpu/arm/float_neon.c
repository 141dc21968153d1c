/* Products of f32, f16 and bf16 weights: simd/products_tmpl.h in registers of NEON. 4 rows x 6 columns
 * of a tile are 24 registers: 10 loads for 24 products. */
#include "vector_neon.h"

#include "../simd/products_tmpl.h"

void ggl_cpu_kernels_float_neon(cpu_kernels *k) {
    fill_products(k);
}
