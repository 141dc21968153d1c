/* Attention over quantized rows: quant/attend_codes.h in registers of NEON with dot products of signed
 * bytes. */
#define LANES_DOT
#include "lanes_neon.h"
#include "vector_neon.h"

#include "../quant/attend_codes.h"

void ggl_cpu_kernels_attend_codes_dotprod(cpu_kernels *k) {
    fill_codes(k);
}
