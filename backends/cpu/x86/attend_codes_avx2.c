/* Attention over quantized rows: quant/attend_codes.h in registers of AVX2. */
#include "lanes_avx2.h"
#include "vector_avx2.h"

#include "../quant/attend_codes.h"

void ggl_cpu_kernels_attend_codes_avx2(cpu_kernels *k) {
    fill_codes(k);
}
