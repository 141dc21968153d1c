/* Measures the limit of AVX-512 with VNNI in registers. */
#if defined(__x86_64__)
#include "peak_avx512_tmpl.h"

const bench_peak bench_peak_avx512vnni = {"avx512vnni", int8, f32, NULL, read_all, read_in_order};
#endif
