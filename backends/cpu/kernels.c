#include "kernels.h"

#include <string.h>

#include "cpu_features.h"

void ggl_cpu_kernels_init(cpu_kernels *k, uint32_t features) {
    *k = (cpu_kernels){0};
    ggl_cpu_kernels_elementwise(k);
    ggl_cpu_kernels_rows(k);
    ggl_cpu_kernels_quantize(k);
    ggl_cpu_kernels_pairs(k);
    ggl_cpu_kernels_dot(k);
    ggl_cpu_kernels_rope(k);
    ggl_cpu_kernels_attend(k);
    ggl_cpu_kernels_recur(k);
#if defined(__x86_64__)
    ggl_cpu_kernels_init_x86(k, features);
#elif defined(__aarch64__)
    ggl_cpu_kernels_init_arm(k, features);
#elif defined(CPU_HAS_VECTORS) /* backends/CMakeLists.txt */
    ggl_cpu_kernels_init_vectors(k, features);
#elif defined(__wasm_simd128__)
    ggl_cpu_kernels_init_wasm(k, features);
#else
    (void)features;
#endif
    const cpu_reading reading[] = {[CPU_BYTES] = ggl_cpu_reading(CPU_BYTES),
                                   [CPU_FEWER_BITS] = ggl_cpu_reading(CPU_FEWER_BITS)};
    for (int t = 0; t < GGL_TYPE_LIMIT; t++) {
        const ggl_type_info *type = ggl_type_get(t);
        if (type && type->quantized)
            k->product[t].reading =
                reading[type->size < (size_t)type->block ? CPU_FEWER_BITS : CPU_BYTES];
    }
}

size_t ggl_cpu_column_size(cpu_columns form, int64_t n) {
    switch (form) {
    case CPU_COLUMNS_BF16:
        return (size_t)cpu_padded(n) * sizeof(float);
    case CPU_COLUMNS_BF16_PAIRS:
        return (size_t)cpu_padded(n) * sizeof(uint16_t);
    case CPU_COLUMNS_BF16_CHAIN:
        return (size_t)((n + 1) / 2) * sizeof(uint32_t);
    case CPU_COLUMNS_Q8:
        return (size_t)(n / CPU_QBLOCK) * sizeof(cpu_qblock);
    default:
        return (size_t)n * sizeof(float);
    }
}

void ggl_cpu_column_make(const cpu_kernels *k, cpu_columns form, void *y, const float *x,
                         int64_t n) {
    switch (form) {
    case CPU_COLUMNS_BF16:
        k->round_bf16(y, x, n);
        break;
    case CPU_COLUMNS_BF16_PAIRS:
        k->round_bf16_pairs(y, x, n);
        break;
    case CPU_COLUMNS_BF16_CHAIN:
        k->pair_up(y, x, n);
        break;
    case CPU_COLUMNS_Q8:
        k->quantize(y, x, n);
        break;
    default:
        memcpy(y, x, (size_t)n * sizeof *x);
    }
}
