/* Which of the built-in descriptors a test looks at that would take minutes with all of them. The choice goes by a seed,
 * GGL_TEST_SEED or else the number of today's day, which is printed: in a few days all have had their turn, and a failure can be
 * seen again. */
#ifndef TESTS_SAMPLE_H
#define TESTS_SAMPLE_H

#include "llm/internal/arch.h"
#include "seed.h"

enum { SAMPLE_MOST = 1024 };

static inline int sample_n(void) {
    const char *name, *text;
    size_t size;
    int n = 0;
    while (n < SAMPLE_MOST && llm_arch_builtin(n, &name, &text, &size))
        n++;
    return n;
}

/* The place of descriptor k in an order that the seed decides. */
static inline int sample_place(int k, uint64_t seed) {
    int place = 0;
    for (int i = 0, n = sample_n(); i < n; i++) {
        uint64_t a = sample_mix(seed * SAMPLE_MOST + (uint64_t)i),
                 b = sample_mix(seed * SAMPLE_MOST + (uint64_t)k);
        place += a < b || (a == b && i < k);
    }
    return place;
}

/* Whether descriptor k is one of the `wanted`. */
static inline bool sampled(int k, int wanted) {
    return sample_place(k, sample_seed()) < wanted;
}

/* The i-th of them; -1: there are fewer descriptors. */
static inline int sample_at(int i) {
    for (int k = 0, n = sample_n(); k < n; k++)
        if (sample_place(k, sample_seed()) == i)
            return k;
    return -1;
}

#endif
