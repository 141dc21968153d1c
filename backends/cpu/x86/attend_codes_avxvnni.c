/* Attention over quantized rows: quant/attend_codes.h in registers of AVX-VNNI. */
#define LANES_VNNI _mm256_dpbusd_avx_epi32
#include "lanes_avx2.h"
#include "vector_avx2.h"

#include "../quant/attend_codes.h"

void ggl_cpu_kernels_attend_codes_avxvnni(cpu_kernels *k) {
    fill_codes(k);
}
