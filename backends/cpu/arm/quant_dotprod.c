/* Products of quantized weights: quant/kernel_tmpl.h in registers of NEON with dot products of signed
 * bytes. */
#define LANES_DOT
#include "lanes_neon.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_dotprod(cpu_kernels *k) {
    fill_products(k);
}
