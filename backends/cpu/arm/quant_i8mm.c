/* Products of quantized weights: quant/kernel_tmpl.h in registers of NEON with dot products of unsigned
 * by signed bytes. */
#define LANES_DOT
#define LANES_USDOT
#include "lanes_neon.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_i8mm(cpu_kernels *k) {
    fill_products(k);
}
