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

static inline uint64_t sample_mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* A number below k for today. It is not the rest of the day's number, because a test that runs on one day of eight would then always have the same
 * ones. */
static inline uint64_t sample_turn(uint64_t k) {
    return sample_mix(sample_seed()) % k;
}

#endif
