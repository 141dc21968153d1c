/* Products of quantized weights: quant/kernel.h in registers of AVX-512 VNNI. */
#define LANES_VNNI
#include "lanes_avx512.h"
#include "unpack_avx2.h"

#include "../quant/unpack.h"
#include "../quant/kernel.h"

void ggl_cpu_kernels_quant_avx512vnni(cpu_kernels *k) {
    fill_products(k);
}
