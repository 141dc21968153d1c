/* The system's monotonic clock, for parameters that take a clock. */
#ifndef LLM_CLOCK_H
#define LLM_CLOCK_H

#include <stdint.h>

/* Returns nanoseconds since some fixed point in the past. They never go back. `ctx` is not used. */
int64_t llm_clock(void *ctx);
/* The same in seconds. */
double llm_seconds(void);

#endif
