/* Products of quantized weights: quant/kernel_tmpl.h in registers of AVX-VNNI. */
#define LANES_VNNI _mm256_dpbusd_avx_epi32
#include "lanes_avx2.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_avxvnni(cpu_kernels *k) {
    fill_products(k);
}
