/* Recurrences: simd/recur_tmpl.h in registers of AVX-512. */
#include "vector_avx512.h"

#include "../simd/recur_tmpl.h"

void ggl_cpu_kernels_recur_avx512(cpu_kernels *k) {
    fill_recur(k);
}
