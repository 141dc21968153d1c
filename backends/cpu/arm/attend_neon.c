/* Attention over a page: simd/attend.h in registers of NEON. */
#include "vector_neon.h"

#include "../simd/attend.h"

void ggl_cpu_kernels_attend_neon(cpu_kernels *k) {
    fill_attend(k);
}
