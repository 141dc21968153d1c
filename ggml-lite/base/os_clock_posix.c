/* os_clock.h for POSIX. */
#include "ggl/internal/os_clock.h"

enum { SECOND = 1000000000 };

static int64_t read_clock(clockid_t of) {
    struct timespec t = {0};
    (void)clock_gettime(of, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

int64_t ggl_os_clock(void) {
    return read_clock(CLOCK_MONOTONIC);
}

double ggl_os_seconds(void) {
    return 1e-9 * (double)ggl_os_clock();
}

int64_t ggl_os_time(void) {
    return read_clock(CLOCK_REALTIME);
}

void ggl_os_sleep(int64_t ns) {
    if (ns > 0)
        (void)nanosleep(&(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)}, NULL);
}

bool ggl_os_utc_parts(int64_t seconds, struct tm *parts) {
    const time_t t = (time_t)seconds;
    struct tm found;
    if (t != seconds || !gmtime_r(&t, &found))
        return false;
    *parts = found;
    return true;
}

bool ggl_os_local_parts(int64_t seconds, struct tm *parts) {
    const time_t t = (time_t)seconds;
    struct tm found;
    if (t != seconds || !localtime_r(&t, &found))
        return false;
    *parts = found;
    return true;
}

int64_t ggl_os_utc_seconds(const struct tm *parts) {
    struct tm t = *parts;
    return timegm(&t);
}
