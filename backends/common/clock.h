/* The clock by which backends report times (ggl_profile_fn), and traces place them. */
#ifndef BACKENDS_CLOCK_H
#define BACKENDS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t backend_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
