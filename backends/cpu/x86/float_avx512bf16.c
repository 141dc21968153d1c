/* Products of bf16 weights: simd/products_tmpl.h in registers of AVX-512, by pairs. */
#define V_PAIRS
#include "vector_avx512.h"

#include "../simd/products_tmpl.h"

void ggl_cpu_kernels_float_avx512bf16(cpu_kernels *k) {
    fill_products(k);
}
