/* Products of quantized weights: quant/kernel_tmpl.h in registers of NEON. */
#include "lanes_neon.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_neon(cpu_kernels *k) {
    fill_products(k);
}
