/* Row reductions, rotation: simd/rows_tmpl.h in registers of AVX2. */
#include "vector_avx2.h"

#include "../simd/rows_tmpl.h"

void ggl_cpu_kernels_rows_avx2(cpu_kernels *k) {
    fill_rows(k);
}
