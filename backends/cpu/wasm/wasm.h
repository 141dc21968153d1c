/* The entry points of the files for WebAssembly: each replaces the table's entries that it has kernels for. */
#ifndef CPU_WASM_H
#define CPU_WASM_H

#include <wasm_simd128.h>

#include "../kernels.h"
#include "../unroll.h"

void ggl_cpu_kernels_elementwise_simd128(cpu_kernels *k);
void ggl_cpu_kernels_rows_simd128(cpu_kernels *k);
void ggl_cpu_kernels_recur_simd128(cpu_kernels *k);
void ggl_cpu_kernels_quantize_simd128(cpu_kernels *k);
void ggl_cpu_kernels_pairs_simd128(cpu_kernels *k);
void ggl_cpu_kernels_float_simd128(cpu_kernels *k);
void ggl_cpu_kernels_quant_simd128(cpu_kernels *k);
void ggl_cpu_kernels_attend_simd128(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_simd128(cpu_kernels *k);

#endif
