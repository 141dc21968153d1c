/* Row reductions, rotation: simd/rows_tmpl.h in registers of AVX-512. */
#include "vector_avx512.h"

#include "../simd/rows_tmpl.h"

void ggl_cpu_kernels_rows_avx512(cpu_kernels *k) {
    fill_rows(k);
}
