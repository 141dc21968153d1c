/* Tests of running time without a clock: the sources under test count their steps (ggl/internal/steps.h).
 * One file of a test program includes this. */
#ifndef TEST_STEPS_H
#define TEST_STEPS_H

#include "ggl/internal/steps.h"
#include "test.h"

uint64_t ggl_n_steps;

/* Work on n took `small` steps, and on `times` * n it took `large`: near linear, which allows for
 * the logarithm of a queue. 0 steps mean that nothing was counted. */
TEST_UNUSED static bool test_linear(const char *what, uint64_t small, uint64_t large,
                                    unsigned times) {
    return CHECK_MSG(small > 0 && large > 0, "%s: no steps were counted", what) &&
           CHECK_MSG((double)large <= 1.3 * times * (double)small,
                     "%s: %" PRIu64 " steps, and %" PRIu64 " for %u times as much", what, small,
                     large, times);
}

#endif
