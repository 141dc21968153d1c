/* UNROLL: before a loop over registers, whose index has to become a constant. Without its pragma
 * gcc keeps the registers in memory; clang takes that one for advice to unroll late, and does so
 * with it. */
#ifndef CPU_UNROLL_H
#define CPU_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
