/* The ARM kernels: one line for each file, lowest instruction set first. */
#include "arm.h"

#include "../cpu_features.h"

void ggl_cpu_kernels_init_arm(cpu_kernels *k, uint32_t features) {
    if (features & CPU_NEON) {
        ggl_cpu_kernels_elementwise_neon(k);
        ggl_cpu_kernels_rows_neon(k);
        ggl_cpu_kernels_recur_neon(k);
        ggl_cpu_kernels_quantize_neon(k);
        ggl_cpu_kernels_pairs_neon(k);
        ggl_cpu_kernels_float_neon(k);
        ggl_cpu_kernels_quant_neon(k);
        ggl_cpu_kernels_attend_neon(k);
        ggl_cpu_kernels_attend_codes_neon(k);
    }
    if (features & CPU_DOTPROD) {
        ggl_cpu_kernels_quant_dotprod(k);
        ggl_cpu_kernels_attend_codes_dotprod(k);
    }
    if (features & CPU_I8MM) {
        ggl_cpu_kernels_quant_i8mm(k);
        ggl_cpu_kernels_attend_codes_i8mm(k);
    }
    if (features & CPU_SVE)
        ggl_cpu_kernels_quant_sve(k);
    if (features & CPU_SMMLA)
        ggl_cpu_kernels_quant_smmla(k);
    if (features & CPU_SME)
        ggl_cpu_kernels_quant_sme(k);
    if (features & CPU_BF16) {
        ggl_cpu_kernels_pairs_bf16(k);
        ggl_cpu_kernels_float_bf16(k);
    }
}
