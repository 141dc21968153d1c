/* Recurrences: simd/recur_tmpl.h in vectors of WebAssembly's SIMD. */
#include "vector_simd128.h"

#include "../simd/recur_tmpl.h"

void ggl_cpu_kernels_recur_simd128(cpu_kernels *k) {
    fill_recur(k);
}
