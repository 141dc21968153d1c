/* os_thread.h for POSIX. What cannot fail for the default kinds of mutexes and conditions is not checked. */
#include "ggl/internal/os_thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <time.h>

#include "ggl/internal/os_clock.h"

enum { SECOND = 1000000000 };

void ggl_os_mutex_init(os_mutex *m) {
    (void)pthread_mutex_init(m, NULL);
}

void ggl_os_mutex_destroy(os_mutex *m) {
    (void)pthread_mutex_destroy(m);
}

void ggl_os_mutex_lock(os_mutex *m) {
    (void)pthread_mutex_lock(m);
}

void ggl_os_mutex_unlock(os_mutex *m) {
    (void)pthread_mutex_unlock(m);
}

bool ggl_os_mutex_try(os_mutex *m) {
    return pthread_mutex_trylock(m) == 0;
}

void ggl_os_cond_destroy(os_cond *c) {
    (void)pthread_cond_destroy(c);
}

void ggl_os_cond_wait(os_cond *c, os_mutex *m) {
    (void)pthread_cond_wait(c, m);
}

#ifdef __APPLE__ /* its conditions know no clock but that of the day */
void ggl_os_cond_init(os_cond *c) {
    (void)pthread_cond_init(c, NULL);
}

bool ggl_os_cond_wait_until(os_cond *c, os_mutex *m, int64_t ns) {
    const int64_t now = ggl_os_clock(), left = ns > now ? ns - now : 0;
    const struct timespec t = {.tv_sec = left / SECOND, .tv_nsec = left % SECOND};
    return pthread_cond_timedwait_relative_np(c, m, &t) != ETIMEDOUT;
}
#else
void ggl_os_cond_init(os_cond *c) {
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(c, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

bool ggl_os_cond_wait_until(os_cond *c, os_mutex *m, int64_t ns) {
    const struct timespec t = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
    return pthread_cond_timedwait(c, m, &t) == 0;
}
#endif

void ggl_os_cond_signal(os_cond *c) {
    (void)pthread_cond_signal(c);
}

void ggl_os_cond_broadcast(os_cond *c) {
    (void)pthread_cond_broadcast(c);
}

bool ggl_os_thread_start(os_thread *t, void *(*run)(void *arg), void *arg, size_t stack) {
    pthread_attr_t a;
    if (stack == 0)
        return pthread_create(t, NULL, run, arg) == 0;
    if (pthread_attr_init(&a) != 0)
        return false;
    const bool is_started =
        pthread_attr_setstacksize(&a, stack) == 0 && pthread_create(t, &a, run, arg) == 0;
    (void)pthread_attr_destroy(&a);
    return is_started;
}

bool ggl_os_thread_start_bare(os_thread *t, void *(*run)(void *arg), void *arg) {
    return ggl_os_thread_start(t, run, arg, 0);
}

int ggl_os_most_bare_threads(void) {
    return INT_MAX;
}

void ggl_os_thread_join(os_thread t) {
    (void)pthread_join(t, NULL);
}

void ggl_os_thread_yield(void) {
    (void)sched_yield();
}

uintptr_t ggl_os_thread_number(void) {
    return (uintptr_t)pthread_self();
}
