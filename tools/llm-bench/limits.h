/* Measures what this machine can do at most: bytes read from memory, multiply-adds in registers. */
#ifndef TOOLS_BENCH_LIMITS_H
#define TOOLS_BENCH_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "ggl/types.h"

/* The loops of an instruction set (peak_<isa>.c). */
typedef struct bench_peak {
    const char *name;
    /* n turns of a loop in registers only; returns the number of multiply-adds. NULL: not known. */
    double (*int8)(int64_t n);
    double (*f32)(int64_t n);
    double (*bf16)(int64_t n);                /* NULL: not faster than f32 */
    void (*read)(const void *p, size_t size); /* reads every byte; size is a multiple of 4096 */
    void (*read_in_order)(const void *p,
                          size_t size); /* another way, which may be faster; NULL: none */
} bench_peak;

extern const bench_peak bench_peak_portable, bench_peak_avx2, bench_peak_avx512,
    bench_peak_avx512vnni, bench_peak_avx512bf16;
double bench_amx_int8(int64_t n); /* bench_peak.int8 in tiles */
/* Returns the best that these features (cpu_features.h) allow. */
const bench_peak *bench_peak_best(uint32_t features);
/* Returns the features of this machine that the mask ("avx512"; NULL: all) and GGL_CPU_MASK
 * leave. */
uint32_t bench_features(const char *mask);

typedef struct bench_limits {
    const char *isa;
    double read_gb;                        /* 1e9 bytes read per second; 0: not measured */
    double int8_gmac, f32_gmac, bf16_gmac; /* 1e9 multiply-adds per second; 0: not known */
} bench_limits;

typedef enum bench_peak_kind { BENCH_INT8, BENCH_BF16, BENCH_F32, BENCH_PEAKS } bench_peak_kind;

/* Returns the arithmetic of products with weights of a type. */
bench_peak_kind bench_peak_of(ggl_type type);
double bench_peak_gmac(const bench_limits *l, bench_peak_kind kind); /* 0: not known */
/* Returns the limit for products with weights of a type; 0: not known. */
double bench_limit_of(const bench_limits *l, ggl_type type);

/* Measures with n_threads at once, each on its own part of a buffer much larger than the last
 * cache. Takes about a second. */
bench_limits bench_limits_measure(int n_threads, uint32_t features);

#endif
