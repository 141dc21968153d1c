/* For checks of kernels: buffers with canaries, values of several kinds, comparison by bits, and
 * the kernel tables of all instruction sets that this machine has. */
#ifndef CONFORMANCE_KERNELS_H
#define CONFORMANCE_KERNELS_H

#include <math.h>
#ifndef __wasi__
#include <sys/mman.h>
#endif

#include "../../backends/cpu/cpu_features.h"
#include "../../backends/cpu/kernels.h"
#include "ggl/internal/types.h"
#include "seed.h"
#include "test.h"

/* GGL_KERNELS_EVERY=n: each n-th problem, others on each day, for emulated processors, which take
 * long. `first` becomes the first one. */
TEST_UNUSED static uint64_t kernels_every(uint64_t *first) {
    const char *every = getenv("GGL_KERNELS_EVERY");
    const uint64_t n = every && atoi(every) > 1 ? (uint64_t)atoi(every) : 1;
    *first = n == 1 ? 0 : sample_turn(n);
    return n;
}

/* Every table from the portable one to this machine's best: [0] is the definition. */
typedef struct tables {
    cpu_kernels k[CPU_MAX_SETS + 2]; /* room for two of a test's own */
    char name[CPU_MAX_SETS + 2][64];
    int n;
} tables;

TEST_UNUSED static void tables_init(tables *t) {
    uint32_t set[CPU_MAX_SETS];
    t->n = ggl_cpu_features_sets(set);
    for (int i = 0; i < t->n; i++) {
        ggl_cpu_kernels_init(&t->k[i], set[i]);
        ggl_cpu_features_text(set[i], t->name[i], sizeof t->name[i]);
    }
}

/* NaN equals NaN, whatever its bits. */
TEST_UNUSED static bool same_bits(const float *a, const float *b, int64_t n, int64_t *where) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t x, y;
        memcpy(&x, a + i, 4);
        memcpy(&y, b + i, 4);
        if (x != y && !(isnan(a[i]) && isnan(b[i]))) {
            *where = i;
            return false;
        }
    }
    return true;
}

#define CHECK_SAME(got, want, n, ...)                                                              \
    do {                                                                                           \
        int64_t at_ = 0;                                                                           \
        if (!same_bits(got, want, n, &at_)) {                                                      \
            char what_[256];                                                                       \
            snprintf(what_, sizeof what_, __VA_ARGS__);                                            \
            (void)TEST_SAY("%s: element %lld of %lld is %a, expected %a", what_, (long long)at_,   \
                           (long long)(n), (double)(got)[at_], (double)(want)[at_]);               \
        }                                                                                          \
    } while (0)

enum { CANARY = 0x5a, GUARD = 64 };

/* size bytes at an address that is `shift` bytes past a multiple of 64, between canaries. */
typedef struct guarded {
    unsigned char *raw, *p;
    size_t size;
} guarded;

TEST_UNUSED static guarded guarded_new(size_t size, size_t shift) {
    guarded g = {.raw = aligned_alloc(64, (size + shift + 2 * GUARD + 63) / 64 * 64), .size = size};
    g.p = g.raw + GUARD + shift;
    memset(g.raw, CANARY, (size + shift + 2 * GUARD + 63) / 64 * 64);
    return g;
}

TEST_UNUSED static void guarded_end(guarded *g, const char *what) {
    for (int i = 1; i <= GUARD; i++)
        if (g->p[-i] != CANARY || g->p[g->size + (size_t)i - 1] != CANARY) {
            (void)TEST_SAY("%s wrote outside of its output", what);
            break;
        }
    free(g->raw);
}

/* n bytes exactly. One in two ends where a page without access begins, so that each read past the
 * end is a crash, in builds without sanitizers too; the others begin `shift` bytes past malloc's
 * alignment. */
typedef struct exact {
    char *raw;
    void *p;
    size_t mapped; /* bytes from raw on; 0: of malloc */
} exact;

#ifdef __wasi__ /* no page is without access there */
TEST_UNUSED static exact exact_new(size_t n, size_t shift) {
    exact e = {.raw = malloc(n + shift + (n + shift == 0))};
    e.p = e.raw + shift;
    return e;
}

TEST_UNUSED static void exact_free(exact *e) {
    free(e->raw);
}
#else
TEST_UNUSED static exact exact_at_guard(size_t n) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (n + page - 1) / page * page + page;
    exact e = {.raw = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
               .mapped = size};
    if (e.raw == MAP_FAILED || mprotect(e.raw + size - page, page, PROT_NONE) != 0) {
        perror("a page without access");
        exit(1);
    }
    e.p = e.raw + size - page - n;
    return e;
}

TEST_UNUSED static exact exact_new(size_t n, size_t shift) {
    static uint64_t seed = 1;
    /* qemu 7.2 reads all of the memory operand of an AVX load with a mask, masked or not */
    if (test_random(&seed) % 2 && !getenv("GGL_NO_GUARD"))
        return exact_at_guard(n);
    exact e = {.raw = malloc(n + shift + (n + shift == 0))};
    e.p = e.raw + shift;
    return e;
}

TEST_UNUSED static void exact_free(exact *e) {
    if (e->mapped)
        munmap(e->raw, e->mapped);
    else
        free(e->raw);
}
#endif

typedef enum values { ORDINARY, EXTREME, WIDE, N_VALUES, AT_CUT = N_VALUES } values;

/* ORDINARY: -4 .. 4. EXTREME: one in four is a NaN, an infinity, a zero, a subnormal, a huge or a
 * tiny number. WIDE: exponents over the whole range. AT_CUT: around the least that bf16 products
 * take, and so alike that sums of products almost cancel. */
TEST_UNUSED static float value_of_kind(uint64_t *seed, values kind) {
    static const float special[] = {NAN,     INFINITY,  -INFINITY, 0.0f,   -0.0f, 1e-40f,
                                    -1e-44f, 3e38f,     -3e38f,    1e-38f, 88.8f, -87.4f,
                                    -103.0f, 0x1p-101f, 0x1p-57f,  1.0f};
    uint64_t r = test_random(seed);
    if (kind == EXTREME && r % 4 == 0)
        return special[r / 4 % 16];
    float x = test_random_float(seed) * 4;
    if (kind == AT_CUT)
        return ldexpf((r & 64 ? -1.0f : 1.0f) * (float)(128 + r / 128 % 4),
                      (int)(r / 512 % 3) - 57 - 7);
    return kind == WIDE ? ldexpf(x, (int)(r / 64 % 200) - 100) : x;
}

TEST_UNUSED static void fill(float *x, int64_t n, uint64_t *seed, values kind) {
    for (int64_t i = 0; i < n; i++)
        x[i] = value_of_kind(seed, kind);
}

/* Offsets of a block's f16 scale and minimum; -1: it has none. */
TEST_UNUSED static void scale_places(ggl_type type, int *d, int *m) {
    *m = type == GGL_Q4_1 || type == GGL_Q5_1 || type == GGL_Q4_K || type == GGL_Q5_K ? 2 : -1;
    *d = 0;
    switch (type) {
    case GGL_Q2_K:
        *d = 80, *m = 82;
        break;
    case GGL_Q3_K:
        *d = 108;
        break;
    case GGL_Q6_K:
        *d = 208;
        break;
    case GGL_TQ1_0:
        *d = 52;
        break;
    case GGL_TQ2_0:
        *d = 64;
        break;
    case GGL_PTQ1_0:
        *d = 26;
        break;
    case GGL_MXFP4:
    case GGL_NVFP4:
    case GGL_IQ1_M:
        *d = -1;
        break;
    default:
        if (ggl_type_get(type)->row_meta > 0)
            *d = -1;
        break;
    }
}

/* Sets the scale of a row that has one. */
TEST_UNUSED static void fill_row_scale(void *row, const ggl_type_info *t, uint64_t *seed,
                                       values kind) {
    const float x = value_of_kind(seed, kind) * 0.01f;
    const uint16_t h = ggl_f32_to_f16(x);
    memcpy(row, t->row_meta == sizeof h ? (const void *)&h : (const void *)&x, t->row_meta);
}

/* Weights of a type: a row of n elements, or any number of rows of types whose rows have no scale, a whole number of blocks; all
 * codes, scales as fill() says. */
TEST_UNUSED static void fill_weights(void *w, ggl_type type, int64_t n, uint64_t *seed,
                                     values kind) {
    const ggl_type_info *t = ggl_type_get(type);
    unsigned char *p = w;
    int place[2];
    scale_places(type, &place[0], &place[1]);
    if (t->row_meta > 0)
        fill_row_scale(p, t, seed, kind);
    p += t->row_meta;
    for (int64_t i = 0; i < n; i += t->block, p += t->size) {
        float x = value_of_kind(seed, kind);
        if (!t->quantized) {
            t->from_float(&x, p, 1);
            continue;
        }
        for (size_t k = 0; k < t->size; k++)
            p[k] = (unsigned char)test_random(seed);
        for (int k = 0; k < 2; k++)
            if (place[k] >= 0) {
                uint16_t d = ggl_f32_to_f16(value_of_kind(seed, kind) * 0.01f);
                memcpy(p + place[k], &d, 2);
            }
        if (type == GGL_MXFP4 && kind == ORDINARY)
            p[0] = (unsigned char)(100 + p[0] % 50);
        if (type == GGL_IQ1_M && kind == ORDINARY) /* a scale below 2 */
            p[t->size - 1] &= 0xb, p[t->size - 1] |= 0x20;
    }
}

#endif
