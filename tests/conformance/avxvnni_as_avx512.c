/* x86/quant_avxvnni.c with the dot product of AVX-512 VNNI in its place: the same operation, the
 * same registers. */
#include <immintrin.h>

#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32       _mm256_dpbusd_epi32
#define ggl_cpu_kernels_quant_avxvnni test_kernels_quant_avxvnni
#include "../../backends/cpu/x86/quant_avxvnni.c"
