/* Attention over a page: simd/attend_tmpl.h in registers of NEON. */
#include "vector_neon.h"

#include "../simd/attend_tmpl.h"

void ggl_cpu_kernels_attend_neon(cpu_kernels *k) {
    fill_attend(k);
}
