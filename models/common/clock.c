#include "clock.h"

#include <time.h>

int64_t llm_clock(void *ctx) {
    struct timespec t;
    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double llm_seconds(void) {
    return 1e-9 * (double)llm_clock(NULL);
}
