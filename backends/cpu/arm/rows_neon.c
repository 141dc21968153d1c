/* Row reductions, rotation: simd/rows_tmpl.h in registers of NEON. */
#include "vector_neon.h"

#include "../simd/rows_tmpl.h"

void ggl_cpu_kernels_rows_neon(cpu_kernels *k) {
    fill_rows(k);
}
