/* The x86 kernels: one line for each file, lowest instruction set first. */
#include "x86.h"

#include "../cpu_features.h"

void ggl_cpu_kernels_init_x86(cpu_kernels *k, uint32_t features) {
    if (features & CPU_AVX2) {
        ggl_cpu_kernels_elementwise_avx2(k);
        ggl_cpu_kernels_rows_avx2(k);
        ggl_cpu_kernels_recur_avx2(k);
        ggl_cpu_kernels_quantize_avx2(k);
        ggl_cpu_kernels_pairs_avx2(k);
        ggl_cpu_kernels_float_avx2(k);
        ggl_cpu_kernels_quant_avx2(k);
        ggl_cpu_kernels_attend_avx2(k);
        ggl_cpu_kernels_attend_codes_avx2(k);
    }
    if (features & CPU_AVXVNNI) {
        ggl_cpu_kernels_quant_avxvnni(k);
        ggl_cpu_kernels_attend_codes_avxvnni(k);
    }
    if (features & CPU_AVX512) {
        ggl_cpu_kernels_elementwise_avx512(k);
        ggl_cpu_kernels_rows_avx512(k);
        ggl_cpu_kernels_recur_avx512(k);
        ggl_cpu_kernels_pairs_avx512(k);
        ggl_cpu_kernels_float_avx512(k);
        ggl_cpu_kernels_attend_avx512(k);
        ggl_cpu_kernels_quant_avx512(k);
        ggl_cpu_kernels_attend_codes_avx512(k);
    }
    if (features & CPU_AVX512VNNI) {
        ggl_cpu_kernels_quant_avx512vnni(k);
        ggl_cpu_kernels_attend_codes_avx512vnni(k);
    }
    if (features & CPU_AVX512BF16) {
        ggl_cpu_kernels_pairs_avx512bf16(k);
        ggl_cpu_kernels_float_avx512bf16(k);
    }
    if (features & CPU_AMX)
        ggl_cpu_kernels_quant_amx(k);
}
