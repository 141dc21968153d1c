/* The instruction sets that this machine has, and those that a mask leaves. (The C library has a
 * header named features.h, hence the name.) */
#ifndef CPU_FEATURES_H
#define CPU_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A feature is the group of extensions for which its files are compiled. */
enum {
    CPU_AVX2 = 1 << 0,       /* AVX2, FMA, F16C */
    CPU_AVXVNNI = 1 << 1,    /* those of CPU_AVX2, and AVX-VNNI */
    CPU_AVX512 = 1 << 2,     /* those of CPU_AVX2, and AVX-512 F, BW, DQ, VL */
    CPU_AVX512VNNI = 1 << 3, /* those of CPU_AVX512, and AVX-512 VNNI */
    CPU_NEON = 1 << 4,       /* every ARMv8-A has it */
    CPU_DOTPROD = 1 << 5,    /* ARMv8.2-A with dot products of signed bytes */
    CPU_I8MM = 1 << 6,       /* those of CPU_DOTPROD, and products of unsigned by signed bytes */
    CPU_AVX512BF16 = 1 << 7, /* those of CPU_AVX512, and AVX-512 BF16 */
    CPU_BF16 = 1 << 8,       /* ARMv8.2-A with products of bf16 */
    CPU_AMX = 1 << 9,        /* those of CPU_AVX512VNNI, and tiles of bytes (AMX-TILE, AMX-INT8) */
    CPU_SVE =
        1 << 10, /* SVE with vectors of 256 bits or more: NEON's are as long as those of 128 */
    CPU_SMMLA = 1 << 11,   /* those of CPU_I8MM: its products of matrices of signed bytes */
    CPU_SME = 1 << 12,     /* those of CPU_I8MM, and outer products of signed bytes (FEAT_SME) */
    CPU_SIMD128 = 1 << 13, /* WebAssembly's vectors of 128 bits, without the relaxed ones */
    CPU_VECTORS = 1 << 14, /* RISC-V's vector extension, or PowerPC's VSX: vectors/ */
};

/* Features that are faster on some processors that have them, and slower on others: a trial decides on each machine, in the
 * order of their bits. (Intel's cores begin a product of pairs of bf16 in every second cycle, and two fused
 * multiply-adds of floats in each.) */
#define CPU_TRIED (CPU_AVX512BF16 | CPU_AMX | CPU_SVE | CPU_SMMLA | CPU_SME)

enum { CPU_MAX_SETS = 8 };

/* Returns name k, from 0 on, that a mask may contain; NULL past the end. For backends/list.c. */
const char *ggl_cpu_mask_name(int k);
/* Returns this machine's features for which the system also saves the registers. Before features
 * are used, the system must be asked. */
uint32_t ggl_cpu_features_detect(void);
/* Asks the system for registers that it gives to a process only on request (those of CPU_AMX), and
 * returns `features` without those that it refuses. They may be asked for again, from any thread. */
uint32_t ggl_cpu_features_ask(uint32_t features);
/* How quantized weights are stored: as codes of 8 bits; as codes of fewer bits. */
typedef enum cpu_codes { CPU_BYTES, CPU_FEWER_BITS } cpu_codes;
/* How weights are read that lie in the order in which they are needed. */
typedef struct cpu_reading {
    /* They are prefetched so many bytes ahead. 0: not at all, because the processor finds them by itself, and prefetching makes it slower. */
    int64_t ahead;
    bool apart; /* two stretches are read side by side, if registers suffice */
} cpu_reading;
/* Returns what is fastest on this processor. */
cpu_reading ggl_cpu_reading(cpu_codes codes);
/* The same for a processor of that family and model of AMD's (family 0: somebody else's). */
cpu_reading ggl_cpu_reading_of(int amd_family, int model, cpu_codes codes);
/* Returns `features` without those named in mask ("avx512,avx2"; "all" removes all; unknown names
 * are ignored) and without features that build on them: without avx2 there is no avx512. mask may
 * be NULL. */
uint32_t ggl_cpu_features_mask(uint32_t features, const char *mask);
/* Sets set[] to the sets of features, of those that this machine has and the system gives, that make different kernel tables, from none
 * to all, slower ones first where they have kernels in common. Returns how many; at most
 * CPU_MAX_SETS. */
int ggl_cpu_features_sets(uint32_t set[CPU_MAX_SETS]);
/* Writes the features' names ("avx2 avx512vnni", or "portable") to buf; returns buf. */
const char *ggl_cpu_features_text(uint32_t features, char *buf, size_t size);

#endif
