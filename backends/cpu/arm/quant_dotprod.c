/* Products of quantized weights: quant/kernel.h in registers of NEON with dot products of signed
 * bytes. */
#define LANES_DOT
#include "lanes_neon.h"
#include "unpack_neon.h"

#include "../quant/unpack.h"
#include "../quant/kernel.h"

void ggl_cpu_kernels_quant_dotprod(cpu_kernels *k) {
    fill_products(k);
}
