/* Attention over quantized rows: quant/attend_codes.h in registers of NEON. */
#include "lanes_neon.h"
#include "vector_neon.h"

#include "../quant/attend_codes.h"

void ggl_cpu_kernels_attend_codes_neon(cpu_kernels *k) {
    fill_codes(k);
}
