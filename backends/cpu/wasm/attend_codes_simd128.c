/* Attention over quantized rows: quant/attend_codes.h in vectors of WebAssembly's SIMD. */
#include "lanes_simd128.h"
#include "vector_simd128.h"

#include "../quant/attend_codes.h"

void ggl_cpu_kernels_attend_codes_simd128(cpu_kernels *k) {
    fill_codes(k);
}
