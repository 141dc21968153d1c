/* Products of f32, f16 and bf16 weights: simd/products_tmpl.h by the compiler's vectors. 4 rows x 6 columns
 * of a tile are 24 of 32 registers: 10 loads for 24 products. */
#include "vector_gnu.h"

#include "../simd/products_tmpl.h"

void ggl_cpu_kernels_float_vectors(cpu_kernels *k) {
    fill_products(k);
}
