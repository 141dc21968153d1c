/* fma and fmaf of libm, by the processor's instruction where it has one: the same bits. The compiler uses the instruction only in files for
 * such processors alone. glibc's functions choose it, too, but musl's compute with integers, which takes 150 instructions.
 *
 * C libraries of boards without an operating system round twice: there, exact_fma.c takes their place where the processor has no instruction
 * (or everywhere, with GGL_EXACT_FMA defined). WebAssembly has doubles, by which os_math_wasm.c is quicker. */
#ifndef BASE_FUSED_H
#define BASE_FUSED_H

#include <math.h>
#include <stdint.h>

float ggl_exact_fmaf(float a, float b, float c);
double ggl_exact_fma(double a, double b, double c);

#if !defined(GGL_EXACT_FMA) && !defined(__unix__) && !defined(__APPLE__) && !defined(_WIN32) &&    \
    !defined(__wasi__)
#define GGL_EXACT_FMA
#endif

/* The functions that compute them where the processor has no instruction. */
#if !defined(GGL_EXACT_FMA)
#define FUSED_DOUBLE fma
#define FUSED_FLOAT  fmaf
#else
#if (defined(__ARM_FEATURE_FMA) && (__ARM_FP & 8)) || (defined(__riscv_flen) && __riscv_flen >= 64)
#define FUSED_DOUBLE __builtin_fma
#else
#define FUSED_DOUBLE ggl_exact_fma
#endif
#if (defined(__ARM_FEATURE_FMA) && (__ARM_FP & 4)) || (defined(__riscv_flen) && __riscv_flen >= 32)
#define FUSED_FLOAT __builtin_fmaf
#else
#define FUSED_FLOAT ggl_exact_fmaf
#endif
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__FMA__) && !defined(GGL_EXACT_FMA)
#define FUSED_BY(instruction, a, b, c)                                                             \
    if (__builtin_cpu_supports("fma")) {                                                           \
        __asm__(instruction " %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));                             \
        return c;                                                                                  \
    }
#else
#define FUSED_BY(instruction, a, b, c)
#endif

/* a b + c, rounded once */
static inline double fused(double a, double b, double c) {
    FUSED_BY("vfmadd231sd", a, b, c)
    return FUSED_DOUBLE(a, b, c);
}

static inline float fused_float(float a, float b, float c) {
    FUSED_BY("vfmadd231ss", a, b, c)
    return FUSED_FLOAT(a, b, c);
}

#endif
