/* os_thread.h for Windows. */
#include "ggl/internal/os_thread.h"

#include <limits.h>
#include <process.h>
#include <windows.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_clock.h"

_Static_assert(sizeof(os_mutex) == sizeof(SRWLOCK) && _Alignof(os_mutex) >= _Alignof(SRWLOCK),
               "os_mutex is an SRWLOCK");
_Static_assert(sizeof(os_cond) == sizeof(CONDITION_VARIABLE) &&
                   _Alignof(os_cond) >= _Alignof(CONDITION_VARIABLE),
               "os_cond is a CONDITION_VARIABLE");

static SRWLOCK *lock_of(os_mutex *m) {
    return (SRWLOCK *)(void *)m;
}

static CONDITION_VARIABLE *variable_of(os_cond *c) {
    return (CONDITION_VARIABLE *)(void *)c;
}

void ggl_os_mutex_init(os_mutex *m) {
    InitializeSRWLock(lock_of(m));
}

void ggl_os_mutex_destroy(os_mutex *m) {
    (void)m; /* it has nothing but its own bytes */
}

void ggl_os_mutex_lock(os_mutex *m) {
    AcquireSRWLockExclusive(lock_of(m));
}

void ggl_os_mutex_unlock(os_mutex *m) {
    ReleaseSRWLockExclusive(lock_of(m));
}

bool ggl_os_mutex_try(os_mutex *m) {
    return TryAcquireSRWLockExclusive(lock_of(m)) != 0;
}

void ggl_os_cond_init(os_cond *c) {
    InitializeConditionVariable(variable_of(c));
}

void ggl_os_cond_destroy(os_cond *c) {
    (void)c;
}

void ggl_os_cond_wait(os_cond *c, os_mutex *m) {
    (void)SleepConditionVariableSRW(variable_of(c), lock_of(m), INFINITE, 0);
}

bool ggl_os_cond_wait_until(os_cond *c, os_mutex *m, int64_t ns) {
    enum { MS = 1000000, MOST = 1 << 30 /* less than INFINITE */ };
    const int64_t left = ns - ggl_os_clock();
    const int64_t ms = left > 0 ? left / MS + (left % MS > 0) : 0;
    /* The wait may end a little too early, by its own clock. */
    return SleepConditionVariableSRW(variable_of(c), lock_of(m), ms < MOST ? (DWORD)ms : MOST, 0) ||
           ggl_os_clock() < ns;
}

void ggl_os_cond_signal(os_cond *c) {
    WakeConditionVariable(variable_of(c));
}

void ggl_os_cond_broadcast(os_cond *c) {
    WakeAllConditionVariable(variable_of(c));
}

typedef struct beginning {
    void *(*run)(void *arg);
    void *arg;
} beginning;

static unsigned __stdcall begin(void *arg) {
    const beginning b = *(const beginning *)arg;
    ggl_free(arg);
    (void)b.run(b.arg);
    return 0;
}

bool ggl_os_thread_start(os_thread *t, void *(*run)(void *arg), void *arg, size_t stack) {
    beginning *b = stack <= UINT_MAX ? ggl_calloc(1, sizeof *b) : NULL;
    if (!b)
        return false;
    *b = (beginning){run, arg};
    /* Without the flag, the number would be that of pages to begin with, not the size of the stack. */
    const unsigned flag = stack > 0 ? STACK_SIZE_PARAM_IS_A_RESERVATION : 0;
    t->handle = (void *)_beginthreadex(NULL, (unsigned)stack, begin, b, flag, NULL);
    if (!t->handle)
        ggl_free(b);
    return t->handle != NULL;
}

bool ggl_os_thread_start_bare(os_thread *t, void *(*run)(void *arg), void *arg) {
    return ggl_os_thread_start(t, run, arg, 0);
}

int ggl_os_most_bare_threads(void) {
    return INT_MAX;
}

void ggl_os_thread_join(os_thread t) {
    (void)WaitForSingleObject(t.handle, INFINITE);
    (void)CloseHandle(t.handle);
}

void ggl_os_thread_yield(void) {
    (void)SwitchToThread();
}

uintptr_t ggl_os_thread_number(void) {
    return GetCurrentThreadId();
}
