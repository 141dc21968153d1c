/* Products of quantized weights: quant/kernel_tmpl.h in registers of AVX-512 VNNI. */
#define LANES_VNNI
#include "lanes_avx512.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_avx512vnni(cpu_kernels *k) {
    fill_products(k);
}
