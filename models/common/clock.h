/* The system's monotonic clock, for parameters that take a clock. */
#ifndef LLM_CLOCK_H
#define LLM_CLOCK_H

#include <stdint.h>

/* Returns ggl_os_clock(). `ctx` is not used. */
int64_t llm_clock(void *ctx);

#endif
