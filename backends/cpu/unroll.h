/* INLINE: before a function of a kernel, expanded where it is called, so that what is `const` in its
 * parameter list is a constant there.
 *
 * UNROLL: before a loop over registers, whose index has to become a constant. Without its pragma
 * gcc keeps the registers in memory; clang takes that one for advice to unroll late, and does so
 * with it.
 *
 * Under a sanitizer (CPU_SMALL_KERNELS) functions and loops stay what they are: the same statements
 * make the same accesses, each of them is checked, and a file that takes the compiler a minute with
 * a check in every copy takes it a second. */
#ifndef CPU_UNROLL_H
#define CPU_UNROLL_H

#ifdef CPU_SMALL_KERNELS
#define INLINE static inline
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#endif
