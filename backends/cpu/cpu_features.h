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
};

/* Of this machine, system support of the registers included. */
uint32_t cpu_features_detect(void);
/* `features` without those named in mask ("avx512,avx2"; "all": none is left; unknown names are
 * ignored). A set goes with those that it stands on: without avx2 there is no avx512. mask may be
 * NULL. */
uint32_t cpu_features_mask(uint32_t features, const char *mask);
/* "avx2 avx512vnni", or "portable"; returns buf. */
const char *cpu_features_text(uint32_t features, char *buf, size_t size);

#endif
