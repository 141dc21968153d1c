/* For tests of running time: GGL_STEPS counts the steps of loops that must stay linear in hostile
 * input. Only a test's own copies of the sources are compiled with GGL_COUNT_STEPS; the test then
 * defines ggl_n_steps. All other builds count nothing.
 *
 * Threads: the counter of a test is that of one thread. */
#ifndef GGL_STEPS_H
#define GGL_STEPS_H

#include <stdint.h>

#ifdef GGL_COUNT_STEPS
extern uint64_t ggl_n_steps;
#define GGL_STEPS(n) (ggl_n_steps += (uint64_t)(n))
#else
#define GGL_STEPS(n) ((void)0)
#endif

#endif
