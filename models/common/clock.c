#include "clock.h"

#include "ggl/internal/os_clock.h"

int64_t llm_clock(void *ctx) {
    (void)ctx;
    return ggl_os_clock();
}
