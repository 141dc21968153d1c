/* Attention over quantized rows: quant/attend_codes.h in registers of NEON with dot products of unsigned
 * by signed bytes. */
#define LANES_DOT
#define LANES_USDOT
#include "lanes_neon.h"
#include "vector_neon.h"

#include "../quant/attend_codes.h"

void ggl_cpu_kernels_attend_codes_i8mm(cpu_kernels *k) {
    fill_codes(k);
}
