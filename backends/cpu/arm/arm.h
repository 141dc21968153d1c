/* The entry points of the ARM files: each replaces the table's entries that it has kernels for. */
#ifndef CPU_ARM_H
#define CPU_ARM_H

#include <arm_neon.h>

#include "../kernels.h"
#include "../unroll.h"

void ggl_cpu_kernels_elementwise_neon(cpu_kernels *k);
void ggl_cpu_kernels_rows_neon(cpu_kernels *k);
void ggl_cpu_kernels_recur_neon(cpu_kernels *k);
void ggl_cpu_kernels_quantize_neon(cpu_kernels *k);
void ggl_cpu_kernels_pairs_neon(cpu_kernels *k);
void ggl_cpu_kernels_pairs_bf16(cpu_kernels *k);
void ggl_cpu_kernels_float_neon(cpu_kernels *k);
void ggl_cpu_kernels_float_bf16(cpu_kernels *k);
void ggl_cpu_kernels_quant_neon(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_neon(cpu_kernels *k);
void ggl_cpu_kernels_attend_neon(cpu_kernels *k);
void ggl_cpu_kernels_quant_dotprod(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_dotprod(cpu_kernels *k);
void ggl_cpu_kernels_quant_i8mm(cpu_kernels *k);
void ggl_cpu_kernels_quant_sve(cpu_kernels *k);
void ggl_cpu_kernels_quant_smmla(cpu_kernels *k);
void ggl_cpu_kernels_quant_sme(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_i8mm(cpu_kernels *k);

#endif
