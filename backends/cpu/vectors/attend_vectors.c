/* Attention over a page: simd/attend_tmpl.h by the compiler's vectors. */
#include "vector_gnu.h"

#include "../simd/attend_tmpl.h"

void ggl_cpu_kernels_attend_vectors(cpu_kernels *k) {
    fill_attend(k);
}
