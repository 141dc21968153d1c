/* What checks need to know of SVE and SME: how long vectors are, whether an emulator multiplies rightly, and
 * the state of a thread. Needs Linux on ARM; most functions need SVE or SME. */
#ifndef CONFORMANCE_SME_H
#define CONFORMANCE_SME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>

#include "../../backends/cpu/arm/sme_words.h"
#include "../../backends/cpu/cpu_features.h"

enum { SME_MOST_BYTES = 256 }; /* of a vector */

#define SME_CODE ".arch_extension sve\n\t"
#define SME_REGISTERS                                                                              \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
        "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", \
        "v28", "v29", "v30", "v31", "p0", "p1", "cc", "memory"

static inline bool sme_here(void) {
    return (ggl_cpu_features_detect() & CPU_SME) != 0;
}

/* False for qemu before 8.2.2, which mixes up the elements of smopa. */
static inline bool sme_multiplies(void) {
    int8_t a[SME_MOST_BYTES], b[SME_MOST_BYTES];
    int32_t got[SME_MOST_BYTES / 4] = {0}, want[4] = {0};
    for (int i = 0; i < SME_MOST_BYTES; i++)
        a[i] = (int8_t)(i * 37 % 255 - 127), b[i] = (int8_t)(i * 53 % 255 - 127);
    for (int i = 0; i < 16; i++) /* slice 1, of which each vector has 4 words */
        want[i / 4] += a[4 + i % 4] * b[i];
    __asm__ volatile(SME_CODE SMSTART "ptrue p0.b\n\t"
                                      "ptrue p1.b\n\t"
                                      "ld1b {z0.b}, p0/z, [%0]\n\t"
                                      "ld1b {z1.b}, p0/z, [%1]\n\t"
                                      "mov w12, 0\n\t" ZERO_TILES(0, 0) SMOPA(0, 0, 1)
                                          MOVA(2, 0, 12, 1) "st1w {z2.s}, p0, [%2]\n\t" SMSTOP
                     :
                     : "r"(a), "r"(b), "r"(got)
                     : "x12", SME_REGISTERS);
    return memcmp(got, want, sizeof want) == 0;
}

/* Ask for vectors of n bytes; return how many they have. */
static inline int sme_set_length(int n) {
    enum { PR_SME_SET_VECTORS = 63, LENGTH = 0xffff };
    return prctl(PR_SME_SET_VECTORS, n, 0, 0, 0) & LENGTH;
}

static inline int sme_length(void) {
    enum { PR_SME_GET_VECTORS = 64, LENGTH = 0xffff };
    return prctl(PR_SME_GET_VECTORS) & LENGTH;
}
static inline int sve_set_length(int n) {
    enum { PR_SVE_SET_VECTORS = 50, LENGTH = 0xffff };
    return prctl(PR_SVE_SET_VECTORS, n, 0, 0, 0) & LENGTH;
}

/* Returns 1 for streaming mode, plus 2 for a ZA that is on. */
static inline uint64_t sme_state(void) {
    uint64_t state;
    __asm__ volatile("mrs %0, s3_3_c4_c2_2" : "=r"(state)); /* SVCR */
    return state;
}

/* Of the procedure call standard: where ZA is saved when somebody else needs it. */
typedef struct sme_save {
    void *buffer;
    uint16_t slices, zero[3];
} sme_save;

/* Turns ZA on, loads it with n slices of n bytes, and leaves it to be saved by who needs it. */
static inline void sme_leave_za(const uint8_t *za, int n, const sme_save *save) {
    __asm__ volatile("mov x17, %0\n\t"
                     "mov w12, 0\n\t" SMSTART_ZA "0:\n\t" LDR_ZA_X17 "add x17, x17, %1\n\t"
                     "add w12, w12, 1\n\t"
                     "cmp x12, %1\n\t"
                     "b.lo 0b\n\t"
                     "msr s3_3_c13_c0_5, %2" /* TPIDR2_EL0 */
                     :
                     : "r"(za), "r"((int64_t)n), "r"(save)
                     : "x12", "x17", "cc", "memory");
}

/* Returns what was given to sme_leave_za(); NULL: ZA was saved. */
static inline const sme_save *sme_left(void) {
    const sme_save *save;
    __asm__ volatile("mrs %0, s3_3_c13_c0_5" : "=r"(save));
    return save;
}

#endif
