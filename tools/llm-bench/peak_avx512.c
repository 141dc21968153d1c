/* Measures the limit of AVX-512 without VNNI in registers. */
#if defined(__x86_64__)
#include "peak_avx512_tmpl.h"

const bench_peak bench_peak_avx512 = {"avx512", int8, f32, NULL, read_all, read_in_order};
#endif
