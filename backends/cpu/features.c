#include "cpu_features.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "prefetch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { AVXVNNI = 1 << 4, AVX512BF16 = 1 << 5 };  /* leaf 7, subleaf 1, eax */
enum { AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 }; /* leaf 7, subleaf 0, edx */
enum { TILE_SHAPES = 17, TILES = 18 };           /* bits of XCR0 */

/* Returns XCR0: the registers that the system saves. Bits 1 and 2: SSE and AVX; 5 to 7: AVX-512. */
static uint64_t saved_registers(void) {
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

uint32_t ggl_cpu_features_detect(void) {
    unsigned a, b, c, d, b7, c7, d7;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    uint64_t saved = saved_registers();
    bool f16c_fma = (c & bit_FMA) && (c & bit_F16C) && (c & bit_AVX);
    if ((saved & 0x6) != 0x6 || !f16c_fma || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) ||
        !(b7 & bit_AVX2))
        return 0;
    uint32_t f = CPU_AVX2;
    const unsigned need = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((saved & 0xe6) == 0xe6 && (b7 & need) == need)
        f |= CPU_AVX512 | (c7 & bit_AVX512VNNI ? CPU_AVX512VNNI : 0);
    const uint64_t tiles = (uint64_t)1 << TILE_SHAPES | (uint64_t)1 << TILES;
    if ((f & CPU_AVX512VNNI) && (saved & tiles) == tiles && (d7 & AMX_TILE) && (d7 & AMX_INT8))
        f |= CPU_AMX;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
        f |= a & AVXVNNI ? CPU_AVXVNNI : 0;
        f |= (a & AVX512BF16) && (f & CPU_AVX512) ? CPU_AVX512BF16 : 0;
    }
    return f;
}

/* Linux gives the tiles to a process, all of its threads at once, from when it asks for them. */
static bool may_use_tiles(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { REQUEST = 0x1023 }; /* ARCH_REQ_XCOMP_PERM */
    return syscall(SYS_arch_prctl, REQUEST, TILES) == 0;
#else
    return false;
#endif
}

uint32_t ggl_cpu_features_ask(uint32_t features) {
    return features & CPU_AMX && !may_use_tiles() ? features & ~(uint32_t)CPU_AMX : features;
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>

enum { DOTPROD = 1 << 20, SVE = 1 << 22 };                     /* AT_HWCAP */
enum { I8MM = 1 << 13, BF16 = 1 << 14, SME = 1 << 23 };        /* AT_HWCAP2 */
enum { PR_SVE_GET_LENGTH = 51, LENGTH = 0xffff, LONGER = 32 }; /* bytes of a vector */

uint32_t ggl_cpu_features_detect(void) {
    const uint64_t caps = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
    uint32_t f = CPU_NEON;
    if (caps & DOTPROD)
        f |= CPU_DOTPROD | (more & I8MM ? CPU_I8MM | CPU_SMMLA : 0);
    if (more & BF16)
        f |= CPU_BF16;
    if (caps & SVE && (prctl(PR_SVE_GET_LENGTH) & LENGTH) >= LONGER)
        f |= CPU_SVE;
    if (f & CPU_I8MM && more & SME)
        f |= CPU_SME;
    return f;
}
#elif defined(__aarch64__)
#if defined(__APPLE__)
#include <sys/sysctl.h>

static bool has(const char *name) {
    int is = 0;
    size_t size = sizeof is;
    return sysctlbyname(name, &is, &size, NULL, 0) == 0 && is;
}
#define HAS_DOTPROD has("hw.optional.arm.FEAT_DotProd")
#define HAS_I8MM    has("hw.optional.arm.FEAT_I8MM")
#define HAS_BF16    has("hw.optional.arm.FEAT_BF16")
#elif defined(_WIN32)
#include <windows.h>

#define HAS_DOTPROD IsProcessorFeaturePresent(43) /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */
#define HAS_I8MM    IsProcessorFeaturePresent(66) /* PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE */
#define HAS_BF16    IsProcessorFeaturePresent(68) /* PF_ARM_V86_BF16_INSTRUCTIONS_AVAILABLE */
#else
#define HAS_DOTPROD false
#define HAS_I8MM    false
#define HAS_BF16    false
#endif

/* SVE and SME are taken on Linux alone, where they were emulated: elsewhere nothing has run them. */
uint32_t ggl_cpu_features_detect(void) {
    uint32_t f = CPU_NEON;
    if (HAS_DOTPROD)
        f |= CPU_DOTPROD | (HAS_I8MM ? CPU_I8MM | CPU_SMMLA : 0);
    if (HAS_BF16)
        f |= CPU_BF16;
    return f;
}
#elif defined(CPU_HAS_VECTORS) && defined(__riscv) && defined(__linux__)
#include <sys/auxv.h>

uint32_t ggl_cpu_features_detect(void) {
    return getauxval(AT_HWCAP) >> ('V' - 'A') & 1 ? CPU_VECTORS : 0;
}
#elif defined(CPU_HAS_VECTORS) &&                                                                  \
    defined(__powerpc64__)      /* every processor of little endian has VSX */
uint32_t ggl_cpu_features_detect(void) {
    return CPU_VECTORS;
}
#elif defined(__wasm_simd128__) /* a program with such instructions runs nowhere else */
uint32_t ggl_cpu_features_detect(void) {
    return CPU_SIMD128;
}
#else
uint32_t ggl_cpu_features_detect(void) {
    return 0;
}
#endif

#if !defined(__x86_64__)
uint32_t ggl_cpu_features_ask(uint32_t features) {
    return features;
}
#endif

/* AMD's processors as they were measured. Zen 4 finds all codes by itself, and Zen 5 those of 8 bits; it falls behind where fewer bytes of codes
 * lie between the scales. Zen 3 falls behind with all codes, and gains most if what is fetched is near. */
static const struct {
    int family, first, last; /* models */
    cpu_reading reading[CPU_FEWER_BITS + 1];
} amd[] = {
    {0x19, 0x00, 0x0f, {{AHEAD_NEAR, false}, {AHEAD_NEAR, false}}}, /* Zen 3 */
    {0x19, 0x20, 0x5f, {{AHEAD_NEAR, false}, {AHEAD_NEAR, false}}},
    {0x1a, 0x00, 0xff, {{0, false}, {AHEAD, false}}}, /* Zen 5 */
};

cpu_reading ggl_cpu_reading_of(int amd_family, int model, cpu_codes codes) {
    const int n = sizeof amd / sizeof *amd, newest = amd[n - 1].family;
    const int family = amd_family > newest ? newest : amd_family;
    for (int i = 0; i < n; i++)
        if (family == amd[i].family && model >= amd[i].first && model <= amd[i].last)
            return amd[i].reading[codes];
    /* the others were measured on Intel's Granite Rapids, whose prefetcher follows each page of 4 KiB by itself */
    return amd_family != 0      ? (cpu_reading){0, false}
           : codes == CPU_BYTES ? (cpu_reading){AHEAD_NEAR / 2, true}
                                : (cpu_reading){AHEAD_NEAR, true};
}

/* Sets the processor's family and model if AMD made it, or who builds its designs; otherwise 0. */
static void amd_model(int *family, int *model) {
    *family = *model = 0;
#if defined(__x86_64__)
    unsigned a, b, c, d, maker[3];
    if (__get_cpuid(0, &a, &maker[0], &maker[2], &maker[1]) &&
        (memcmp(maker, "AuthenticAMD", sizeof maker) == 0 ||
         memcmp(maker, "HygonGenuine", sizeof maker) == 0) &&
        __get_cpuid(1, &a, &b, &c, &d)) {
        *family = (int)((a >> 8 & 15) + (a >> 20 & 255));
        *model = (int)((a >> 4 & 15) + (a >> 12 & 0xf0));
    }
#endif
}

cpu_reading ggl_cpu_reading(cpu_codes codes) {
    int family, model;
    amd_model(&family, &model);
    return ggl_cpu_reading_of(family, model, codes);
}

static const struct {
    const char *name;
    uint32_t takes; /* the features that masking this one removes */
    uint32_t self;
} feature[] = {
    {"all", ~0u, 0},
    {"avx2", CPU_AVX2 | CPU_AVXVNNI | CPU_AVX512 | CPU_AVX512VNNI | CPU_AVX512BF16 | CPU_AMX,
     CPU_AVX2},
    {"avxvnni", CPU_AVXVNNI, CPU_AVXVNNI},
    {"avx512", CPU_AVX512 | CPU_AVX512VNNI | CPU_AVX512BF16 | CPU_AMX, CPU_AVX512},
    {"avx512vnni", CPU_AVX512VNNI | CPU_AMX, CPU_AVX512VNNI},
    {"avx512bf16", CPU_AVX512BF16, CPU_AVX512BF16},
    {"amx", CPU_AMX, CPU_AMX},
    {"neon", CPU_NEON | CPU_DOTPROD | CPU_I8MM | CPU_SVE | CPU_SMMLA | CPU_BF16 | CPU_SME,
     CPU_NEON},
    {"dotprod", CPU_DOTPROD | CPU_I8MM | CPU_SMMLA | CPU_SME, CPU_DOTPROD},
    {"i8mm", CPU_I8MM | CPU_SMMLA | CPU_SME, CPU_I8MM},
    {"smmla", CPU_SMMLA, CPU_SMMLA},
    {"sve", CPU_SVE, CPU_SVE},
    {"sme", CPU_SME, CPU_SME},
    {"bf16", CPU_BF16, CPU_BF16},
    {"vectors", CPU_VECTORS, CPU_VECTORS},
    {"simd128", CPU_SIMD128, CPU_SIMD128},
};
enum { N_FEATURE = sizeof feature / sizeof *feature };

const char *ggl_cpu_mask_name(int k) {
    return k < N_FEATURE ? feature[k].name : NULL;
}

uint32_t ggl_cpu_features_mask(uint32_t features, const char *mask) {
    while (mask && *mask) {
        size_t n = strcspn(mask, ", ");
        for (int i = 0; i < N_FEATURE; i++)
            if (strlen(feature[i].name) == n && memcmp(feature[i].name, mask, n) == 0)
                features &= ~feature[i].takes;
        mask += n + (mask[n] != 0);
    }
    return features;
}

int ggl_cpu_features_sets(uint32_t set[CPU_MAX_SETS]) {
    static const uint32_t sets[] = {
        0,
        CPU_AVX2,
        CPU_AVX2 | CPU_AVXVNNI,
        CPU_AVX2 | CPU_AVX512,
        CPU_AVX2 | CPU_AVX512 | CPU_AVX512VNNI,
        CPU_AVX2 | CPU_AVX512 | CPU_AVX512VNNI | CPU_AVX512BF16,
        CPU_AVX2 | CPU_AVX512 | CPU_AVX512VNNI | CPU_AVX512BF16 | CPU_AMX,
        CPU_NEON,
        CPU_NEON | CPU_SVE,
        CPU_NEON | CPU_DOTPROD,
        CPU_NEON | CPU_DOTPROD | CPU_I8MM,
        CPU_NEON | CPU_DOTPROD | CPU_I8MM | CPU_SMMLA,
        CPU_NEON | CPU_DOTPROD | CPU_I8MM | CPU_SMMLA | CPU_BF16,
        CPU_NEON | CPU_DOTPROD | CPU_I8MM | CPU_SMMLA | CPU_BF16 | CPU_SME,
        CPU_VECTORS,
        CPU_SIMD128};
    const uint32_t all = ggl_cpu_features_ask(ggl_cpu_features_detect());
    int n = 0;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if ((sets[i] & all) == sets[i])
            set[n++] = sets[i];
    return n;
}

const char *ggl_cpu_features_text(uint32_t features, char *buf, size_t size) {
    size_t n = 0;
    snprintf(buf, size, "portable");
    for (int i = 0; i < N_FEATURE; i++)
        if (features & feature[i].self && n < size)
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "", feature[i].name);
    return buf;
}
