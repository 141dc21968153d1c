/* Elementwise kernels: simd/elementwise_tmpl.h by the compiler's vectors. */
#include "vector_gnu.h"

#include "../simd/elementwise_tmpl.h"

void ggl_cpu_kernels_elementwise_vectors(cpu_kernels *k) {
    fill_elementwise(k);
}
