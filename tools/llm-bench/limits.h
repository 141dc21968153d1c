/* What this machine can do at most, measured: bytes read from memory, multiply-adds in registers.
 */
#ifndef TOOLS_BENCH_LIMITS_H
#define TOOLS_BENCH_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "ggl/types.h"

/* The loops of one instruction set (bench_peak_<isa>.c). */
typedef struct bench_peak {
    const char *name;
    /* n turns of a loop over registers alone; returns the multiply-adds done. NULL: not known. */
    double (*int8)(int64_t n);
    double (*f32)(int64_t n);
    double (*bf16)(int64_t n);                /* NULL: no faster than f32 */
    void (*read)(const void *p, size_t size); /* every byte; size a multiple of 4096 */
} bench_peak;

extern const bench_peak bench_peak_portable, bench_peak_avx2, bench_peak_avx512vnni,
    bench_peak_avx512bf16;
/* The best that needs no more than these features (cpu_features.h). */
const bench_peak *bench_peak_best(uint32_t features);
/* Of this machine, what the mask ("avx512"; NULL: all) and GGL_CPU_MASK leave. */
uint32_t bench_features(const char *mask);

typedef struct bench_limits {
    const char *isa;
    double read_gb;                        /* 1e9 bytes read per second; 0: could not be measured */
    double int8_gmac, f32_gmac, bf16_gmac; /* 1e9 multiply-adds per second; 0: not known */
} bench_limits;

/* What products with weights of a type can reach. 0: not known. */
double bench_limit_of(const bench_limits *l, ggl_type type);

/* With n_threads at once, each on its own part of a buffer well beyond the last cache. Takes about
 * a second. */
bench_limits bench_limits_measure(int n_threads, uint32_t features);

#endif
