/* Products of quantized weights: quant/kernel_tmpl.h in registers of AVX2. */
#include "lanes_avx2.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_avx2(cpu_kernels *k) {
    fill_products(k);
}
