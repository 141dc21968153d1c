/* The kernels by the compiler's vectors: one line for each file. */
#include "vectors.h"

#include "../cpu_features.h"

void ggl_cpu_kernels_init_vectors(cpu_kernels *k, uint32_t features) {
    if (!(features & CPU_VECTORS))
        return;
    ggl_cpu_kernels_elementwise_vectors(k);
    ggl_cpu_kernels_rows_vectors(k);
    ggl_cpu_kernels_recur_vectors(k);
    ggl_cpu_kernels_quantize_vectors(k);
    ggl_cpu_kernels_pairs_vectors(k);
    ggl_cpu_kernels_float_vectors(k);
    ggl_cpu_kernels_quant_vectors(k);
    ggl_cpu_kernels_attend_vectors(k);
    ggl_cpu_kernels_attend_codes_vectors(k);
}
