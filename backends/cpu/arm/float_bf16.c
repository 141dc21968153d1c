/* Products of bf16 weights: simd/products_tmpl.h in registers of NEON, by pairs. */
#define V_PAIRS
#include "vector_neon.h"

#include "../simd/products_tmpl.h"

void ggl_cpu_kernels_float_bf16(cpu_kernels *k) {
    fill_products(k);
}
