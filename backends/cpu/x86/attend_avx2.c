/* Attention over a page: simd/attend_tmpl.h in registers of AVX2. */
#include "vector_avx2.h"

#include "../simd/attend_tmpl.h"

void ggl_cpu_kernels_attend_avx2(cpu_kernels *k) {
    fill_attend(k);
}
