/* The seed of what a test looks at today: GGL_TEST_SEED, or else the number of the day. It is printed, so that a failure can be
 * seen again. */
#ifndef TESTS_SEED_H
#define TESTS_SEED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Whether a test that looks at a part of something each day is to look at all of it, as in ./test long. */
static inline bool sample_is_all(void) {
    return getenv("GGL_TEST_LONG") != NULL;
}

static inline uint64_t sample_seed(void) {
    static uint64_t seed, known;
    const char *given = getenv("GGL_TEST_SEED");
    if (!known) {
        seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) / 86400;
        printf("samples are chosen by GGL_TEST_SEED=%llu\n", (unsigned long long)seed);
        known = 1;
    }
    return seed;
}

#endif
