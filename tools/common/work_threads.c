#include "work_threads.h"

#include "../../backends/cpu/cores.h"
#include "common/work_share.h"

int work_threads(void) {
    const int n = ggl_cpu_allowed();
    return n > WORK_MAX_THREADS ? WORK_MAX_THREADS : n;
}
