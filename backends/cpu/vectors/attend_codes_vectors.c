/* Attention over quantized rows: quant/attend_codes.h by the compiler's vectors. */
#include "lanes_gnu.h"
#include "vector_gnu.h"

#include "../quant/attend_codes.h"

void ggl_cpu_kernels_attend_codes_vectors(cpu_kernels *k) {
    fill_codes(k);
}
