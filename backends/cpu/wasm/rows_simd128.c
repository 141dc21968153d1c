/* Row reductions, rotation: simd/rows_tmpl.h in vectors of WebAssembly's SIMD. */
#include "vector_simd128.h"

#include "../simd/rows_tmpl.h"

void ggl_cpu_kernels_rows_simd128(cpu_kernels *k) {
    fill_rows(k);
}
