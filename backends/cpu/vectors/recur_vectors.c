/* Recurrences: simd/recur_tmpl.h by the compiler's vectors. */
#include "vector_gnu.h"

#include "../simd/recur_tmpl.h"

void ggl_cpu_kernels_recur_vectors(cpu_kernels *k) {
    fill_recur(k);
}
