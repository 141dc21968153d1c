/* x86/attend_codes_avxvnni.c with the dot product of AVX-512 VNNI in its place, like
 * avxvnni_as_avx512.c. */
#include <immintrin.h>

#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32              _mm256_dpbusd_epi32
#define ggl_cpu_kernels_attend_codes_avxvnni test_kernels_attend_codes_avxvnni
#include "../../backends/cpu/x86/attend_codes_avxvnni.c"
