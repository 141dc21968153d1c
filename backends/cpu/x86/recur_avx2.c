/* Recurrences: simd/recur_tmpl.h in registers of AVX2. */
#include "vector_avx2.h"

#include "../simd/recur_tmpl.h"

void ggl_cpu_kernels_recur_avx2(cpu_kernels *k) {
    fill_recur(k);
}
