/* Products of quantized weights: quant/kernel_tmpl.h by the compiler's vectors. */
#include "lanes_gnu.h"

#include "../quant/kernel_tmpl.h"

void ggl_cpu_kernels_quant_vectors(cpu_kernels *k) {
    fill_products(k);
}
