/* The entry points of the x86 files: each replaces the table's entries that it has kernels for. */
#ifndef CPU_X86_H
#define CPU_X86_H

#include "../kernels.h"

void ggl_cpu_kernels_elementwise_avx2(cpu_kernels *k);
void ggl_cpu_kernels_rows_avx2(cpu_kernels *k);
void ggl_cpu_kernels_recur_avx2(cpu_kernels *k);
void ggl_cpu_kernels_quantize_avx2(cpu_kernels *k);
void ggl_cpu_kernels_pairs_avx2(cpu_kernels *k);
void ggl_cpu_kernels_float_avx2(cpu_kernels *k);
void ggl_cpu_kernels_quant_avx2(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_avx2(cpu_kernels *k);
void ggl_cpu_kernels_attend_avx2(cpu_kernels *k);
void ggl_cpu_kernels_quant_avxvnni(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_avxvnni(cpu_kernels *k);
void ggl_cpu_kernels_elementwise_avx512(cpu_kernels *k);
void ggl_cpu_kernels_rows_avx512(cpu_kernels *k);
void ggl_cpu_kernels_recur_avx512(cpu_kernels *k);
void ggl_cpu_kernels_float_avx512(cpu_kernels *k);
void ggl_cpu_kernels_float_avx512bf16(cpu_kernels *k);
void ggl_cpu_kernels_pairs_avx512(cpu_kernels *k);
void ggl_cpu_kernels_pairs_avx512bf16(cpu_kernels *k);
void ggl_cpu_kernels_attend_avx512(cpu_kernels *k);
void ggl_cpu_kernels_quant_avx512(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_avx512(cpu_kernels *k);
void ggl_cpu_kernels_quant_avx512vnni(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_avx512vnni(cpu_kernels *k);
void ggl_cpu_kernels_quant_amx(cpu_kernels *k);

#endif
