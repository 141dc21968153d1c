/* fma and fmaf of libm, by the processor's instruction where it has one: the same bits. The compiler uses the instruction only in files for
 * such processors alone. glibc's functions choose it, too, but musl's compute with integers, which takes 150 instructions. */
#ifndef BASE_FUSED_H
#define BASE_FUSED_H

#include <math.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__FMA__)
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
    return fma(a, b, c);
}

static inline float fused_float(float a, float b, float c) {
    FUSED_BY("vfmadd231ss", a, b, c)
    return fmaf(a, b, c);
}

#endif
