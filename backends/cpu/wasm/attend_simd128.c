/* Attention over a page: simd/attend_tmpl.h in vectors of WebAssembly's SIMD. */
#include "vector_simd128.h"

#include "../simd/attend_tmpl.h"

void ggl_cpu_kernels_attend_simd128(cpu_kernels *k) {
    fill_attend(k);
}
