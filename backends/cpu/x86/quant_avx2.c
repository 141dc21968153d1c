/* Products of quantized weights: quant/kernel.h in registers of AVX2. */
#include "lanes_avx2.h"
#include "unpack_avx2.h"

#include "../quant/unpack.h"
#include "../quant/kernel.h"

void ggl_cpu_kernels_quant_avx2(cpu_kernels *k) {
    fill_products(k);
}
