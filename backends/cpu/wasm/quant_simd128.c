/* Products of quantized weights: quant/kernel_tmpl.h in vectors of WebAssembly's SIMD. */
#include "lanes_simd128.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_simd128(cpu_kernels *k) {
    fill_products(k);
}
