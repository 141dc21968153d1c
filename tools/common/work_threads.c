#include "work_threads.h"

#include "common/work_share.h"
#include "ggl/internal/backends.h"

int work_threads(void) {
    const int n = ggl_backend_allowed_cpus();
    return n > WORK_MAX_THREADS ? WORK_MAX_THREADS : n;
}
