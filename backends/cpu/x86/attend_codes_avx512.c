/* Attention over quantized rows: quant/attend_codes.h in registers of AVX-512. */
#include "lanes_avx512.h"
#include "vector_avx512.h"

#include "../quant/attend_codes.h"

void ggl_cpu_kernels_attend_codes_avx512(cpu_kernels *k) {
    fill_codes(k);
}
