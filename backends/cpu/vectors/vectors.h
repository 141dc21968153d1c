/* Kernels for processors without a folder of their own, by the compiler's own vectors of 128 bits (GNU C): it makes RISC-V's vector instructions of them, or PowerPC's.
 * The entry points of the files: each replaces the table's entries that it has kernels for. */
#ifndef CPU_VECTORS_H
#define CPU_VECTORS_H

#include <string.h>
#ifdef __riscv_vector
#include <riscv_vector.h>
#endif

#include "../kernels.h"
#include "../unroll.h"

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef uint8_t vbytes __attribute__((vector_size(16)));
typedef int8_t vsigned __attribute__((vector_size(16)));
typedef uint16_t vwords __attribute__((vector_size(16)));
typedef uint64_t vlongs __attribute__((vector_size(16)));
typedef int16_t vwide __attribute__((vector_size(32))); /* products of 16 bytes */
typedef int32_t vpairs __attribute__((vector_size(32)));

/* Four numbers of 16 bits, eight and four bytes: halves and quarters of a vector. */
typedef uint16_t four_words __attribute__((vector_size(8)));
typedef int16_t eight_words __attribute__((vector_size(16)));
typedef uint8_t eight_bytes __attribute__((vector_size(8)));
typedef int8_t eight_signed __attribute__((vector_size(8)));
typedef uint8_t word_bytes __attribute__((vector_size(4)));

void ggl_cpu_kernels_elementwise_vectors(cpu_kernels *k);
void ggl_cpu_kernels_rows_vectors(cpu_kernels *k);
void ggl_cpu_kernels_recur_vectors(cpu_kernels *k);
void ggl_cpu_kernels_quantize_vectors(cpu_kernels *k);
void ggl_cpu_kernels_pairs_vectors(cpu_kernels *k);
void ggl_cpu_kernels_float_vectors(cpu_kernels *k);
void ggl_cpu_kernels_quant_vectors(cpu_kernels *k);
void ggl_cpu_kernels_attend_vectors(cpu_kernels *k);
void ggl_cpu_kernels_attend_codes_vectors(cpu_kernels *k);

/* Sets all lanes to x; -0 stays what it is. */
INLINE vf all_of(float x) {
    return (vf){x, x, x, x};
}

/* Returns a * b + c, rounded once: clang makes an instruction of the expression where it may contract it, which tests of bits would notice if it did not. */
INLINE vf fused(vf a, vf b, vf c) {
#if defined(__clang__)
#pragma clang fp contract(on)
    return a * b + c;
#elif defined(__VSX__)
    return (vf)__builtin_vsx_xvmaddsp((__vector float)a, (__vector float)b, (__vector float)c);
#else
    return (vf){__builtin_fmaf(a[0], b[0], c[0]), __builtin_fmaf(a[1], b[1], c[1]),
                __builtin_fmaf(a[2], b[2], c[2]), __builtin_fmaf(a[3], b[3], c[3])};
#endif
}

/* Returns a in the lanes where m is all ones, b where it is 0. */
INLINE vi choose(vi m, vi a, vi b) {
    return (a & m) | (b & ~m);
}

/* Converts f16 numbers. The exponent's new bias is a factor, so that subnormal numbers come out right, too. */
INLINE vf halves(four_words p) {
    const vu h = __builtin_convertvector(p, vu), size = (h & 0x7fff) << 13;
    const vi is_special = (vi)(size > 0x0f7fffff);
    const vf y = (vf)size * 0x1p112f;
    return (vf)((vu)y | ((vu)is_special & 0x7f800000) | (h & 0x8000) << 16);
}

/* Rounds to f16, to nearest even. */
INLINE four_words to_halves(vf x) {
    const vu size = (vu)x & 0x7fffffff, sign = ((vu)x ^ size) >> 16;
    /* normal: half of the last place, less one if it is even, is added; the bias changes by 112 */
    const vu normal = (size + (size >> 13 & 1) + (0xfffu - (112u << 23))) >> 13;
    /* subnormal: units of 2^-24 are the last places of 0.5 */
    const vf half = {0.5f, 0.5f, 0.5f, 0.5f};
    const vu subnormal = (vu)((vf)size + half) - (vu)half;
    const vi nan = (vi)(size > 0x7f800000);
    vi y = choose((vi)(size < (113u << 23)), (vi)subnormal, (vi)normal);
    y = choose((vi)(size > (143u << 23) - 1), (nan & 0x200) | 0x7c00, y);
    return __builtin_convertvector((vu)y | sign, four_words);
}

/* Returns table[v] for each byte v below 16. */
INLINE vbytes look_up(vbytes table, vbytes v) {
#if defined(__riscv_vector)
    __riscv_vse8_v_u8m1((uint8_t *)&v,
                        __riscv_vrgather_vv_u8m1(__riscv_vle8_v_u8m1((const uint8_t *)&table, 16),
                                                 __riscv_vle8_v_u8m1((const uint8_t *)&v, 16), 16),
                        16);
#elif defined(__clang__)
    UNROLL for (int i = 0; i < 16; i++) v[i] = table[v[i]];
#else
    v = __builtin_shuffle(table, v);
#endif
    return v;
}

#define LOAD(type, p)                                                                              \
    ({                                                                                             \
        type loaded_;                                                                              \
        memcpy(&loaded_, p, sizeof loaded_);                                                       \
        loaded_;                                                                                   \
    })

#endif
