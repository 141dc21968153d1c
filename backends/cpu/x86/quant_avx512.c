/* Products of quantized weights: quant/kernel_tmpl.h in registers of AVX-512, without its dot products.
 */
#include "lanes_avx512.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_avx512(cpu_kernels *k) {
    fill_products(k);
}
