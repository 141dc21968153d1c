/* Recurrences: simd/recur_tmpl.h in registers of NEON. */
#include "vector_neon.h"

#include "../simd/recur_tmpl.h"

void ggl_cpu_kernels_recur_neon(cpu_kernels *k) {
    fill_recur(k);
}
