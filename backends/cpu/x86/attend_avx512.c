/* Attention over a page: simd/attend_tmpl.h in registers of AVX-512. */
#include "vector_avx512.h"

#include "../simd/attend_tmpl.h"

void ggl_cpu_kernels_attend_avx512(cpu_kernels *k) {
    fill_attend(k);
}
