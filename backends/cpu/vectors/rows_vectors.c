/* Row reductions, rotation: simd/rows_tmpl.h by the compiler's vectors. */
#include "vector_gnu.h"

#include "../simd/rows_tmpl.h"

void ggl_cpu_kernels_rows_vectors(cpu_kernels *k) {
    fill_rows(k);
}
