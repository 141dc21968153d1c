/* INLINE: marks a function that must be expanded where a kernel calls it, so that arguments for its
 * `const` parameters become constants.
 *
 * UNROLL: marks a loop over registers that must be unrolled, so that its index becomes a constant.
 * Without a pragma gcc keeps the registers in memory. clang needs its own pragma: it takes gcc's as
 * advice to unroll late.
 *
 * UNROLL_4: marks a loop of any length of which four turns become one, with fewer jumps.
 *
 * With CPU_SMALL_KERNELS, for sanitizers, they do nothing: the same statements make the same
 * accesses and all are checked, but a file compiles in a second instead of a minute. */
#ifndef CPU_UNROLL_H
#define CPU_UNROLL_H

#ifdef CPU_SMALL_KERNELS
#define INLINE static inline
#define UNROLL
#define UNROLL_4
#else
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL   _Pragma("clang loop unroll(full)")
#define UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL   _Pragma("GCC unroll 16")
#define UNROLL_4 _Pragma("GCC unroll 4")
#endif
#endif

/* A loop over n registers. */
#define EACH_OF(i, n) UNROLL for (int i = 0; i < (n); i++)

#endif
