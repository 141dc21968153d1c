/* os_thread.h for systems where a program has one thread. Nobody else ever holds a mutex, or changes what a wait is for. */
#include "ggl/internal/os_thread.h"

#include <stdlib.h>

#include "ggl/internal/os_clock.h"

const bool ggl_os_has_threads = false;

void ggl_os_mutex_init(os_mutex *m) {
    *m = (os_mutex){0};
}

void ggl_os_mutex_destroy(os_mutex *m) {
    (void)m;
}

void ggl_os_mutex_lock(os_mutex *m) {
    m->is_locked = true;
}

void ggl_os_mutex_unlock(os_mutex *m) {
    m->is_locked = false;
}

bool ggl_os_mutex_try(os_mutex *m) {
    const bool is_free = !m->is_locked;
    m->is_locked = true;
    return is_free;
}

void ggl_os_cond_init(os_cond *c) {
    *c = (os_cond){0};
}

void ggl_os_cond_destroy(os_cond *c) {
    (void)c;
}

/* It would never end: this is a mistake in the program, and an end is better than a page that hangs. */
void ggl_os_cond_wait(os_cond *c, os_mutex *m) {
    (void)c, (void)m;
    abort();
}

bool ggl_os_cond_wait_until(os_cond *c, os_mutex *m, int64_t ns) {
    (void)c, (void)m;
    ggl_os_sleep(ns - ggl_os_clock());
    return false;
}

void ggl_os_cond_signal(os_cond *c) {
    (void)c;
}

void ggl_os_cond_broadcast(os_cond *c) {
    (void)c;
}

bool ggl_os_thread_start(os_thread *t, void *(*run)(void *arg), void *arg, size_t stack) {
    (void)t, (void)run, (void)arg, (void)stack;
    return false;
}

void ggl_os_thread_join(os_thread t) {
    (void)t;
}

void ggl_os_thread_yield(void) {}

uintptr_t ggl_os_thread_number(void) {
    return 1;
}
