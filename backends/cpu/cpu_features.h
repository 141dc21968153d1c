/* (Not features.h, which is a name of the C library.) What instruction sets this machine has, and
 * which of them a mask leaves. */
#ifndef CPU_FEATURES_H
#define CPU_FEATURES_H

#include <stddef.h>
#include <stdint.h>

/* A feature stands for the group of extensions that its files are compiled with. */
enum {
    CPU_AVX2 = 1 << 0,       /* AVX2, FMA, F16C */
    CPU_AVXVNNI = 1 << 1,    /* AVX2's, and AVX-VNNI */
    CPU_AVX512 = 1 << 2,     /* AVX2's, and AVX-512 F, BW, DQ, VL */
    CPU_AVX512VNNI = 1 << 3, /* AVX-512's, and AVX-512 VNNI */
    CPU_NEON = 1 << 4,       /* what every ARMv8-A has */
    CPU_DOTPROD = 1 << 5,    /* ARMv8.2-A, and its dot products of signed bytes */
    CPU_I8MM = 1 << 6,       /* those, and of unsigned by signed bytes */
    CPU_AVX512BF16 = 1 << 7, /* AVX-512's, and AVX-512 BF16 */
    CPU_BF16 = 1 << 8,       /* ARMv8.2-A, and its products of bf16 */
};

enum { CPU_MAX_SETS = 8 };

/* The k-th name that a mask may have; NULL past the end. For backends/list.c. */
const char *ggl_cpu_mask_name(int k);
/* Of this machine, system support of the registers included. */
uint32_t ggl_cpu_features_detect(void);
/* `features` without those named in mask ("avx512,avx2"; "all": none is left; unknown names are
 * ignored). A set goes with those that it stands on: without avx2 there is no avx512. mask may be
 * NULL. */
uint32_t ggl_cpu_features_mask(uint32_t features, const char *mask);
/* Every set of features that makes another table, from none to all of this machine's, each better
 * than those before it as far as they have kernels in common. Returns how many; at most
 * CPU_MAX_SETS. */
int ggl_cpu_features_sets(uint32_t set[CPU_MAX_SETS]);
/* "avx2 avx512vnni", or "portable"; returns buf. */
const char *ggl_cpu_features_text(uint32_t features, char *buf, size_t size);

#endif
