/* Threads, mutexes and conditions of the operating system (base/os_thread_posix.c, os_thread_windows.c; os_thread_wasm.c, where
 * only bare threads can be started, so that each other caller does the work itself, or fails).
 *
 *     os_mutex lock = OS_MUTEX_INIT;   or ggl_os_mutex_init(&lock)
 *     ggl_os_mutex_lock(&lock);
 *     while (!ready)
 *         ggl_os_cond_wait(&changed, &lock);
 *     ggl_os_mutex_unlock(&lock);
 *
 * Threads: any number may call these functions at the same time, but for init and destroy: the object has one user then. */
#ifndef GGL_OS_THREAD_H
#define GGL_OS_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
/* <windows.h> defines common words as macros, so it is not included here. The members are an SRWLOCK, a
 * CONDITION_VARIABLE and a HANDLE. */
typedef struct os_mutex {
    void *lock;
} os_mutex;
typedef struct os_cond {
    void *variable;
} os_cond;
typedef struct os_thread {
    void *handle;
} os_thread;
#define OS_MUTEX_INIT                                                                              \
    { 0 }
#elif defined __wasi__
typedef struct os_mutex {
    int32_t state;
} os_mutex;
typedef struct os_cond {
    int32_t signals; /* how many there were */
} os_cond;
typedef struct os_thread {
    int slot;
} os_thread;
#define OS_MUTEX_INIT                                                                              \
    { 0 }
#else
#include <pthread.h>

typedef pthread_mutex_t os_mutex;
typedef pthread_cond_t os_cond;
typedef pthread_t os_thread;
#define OS_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A thread that has the mutex must not lock it again. */
void ggl_os_mutex_init(os_mutex *m);
void ggl_os_mutex_destroy(os_mutex *m);
void ggl_os_mutex_lock(os_mutex *m);
void ggl_os_mutex_unlock(os_mutex *m);
/* Returns false, at once, if a thread has it. */
bool ggl_os_mutex_try(os_mutex *m);

/* A wait may also end without a signal, so callers check what they wait for. */
void ggl_os_cond_init(os_cond *c);
void ggl_os_cond_destroy(os_cond *c);
void ggl_os_cond_wait(os_cond *c, os_mutex *m);
/* Returns false if that time of ggl_os_clock() has come (os_clock.h). */
bool ggl_os_cond_wait_until(os_cond *c, os_mutex *m, int64_t ns);
void ggl_os_cond_signal(os_cond *c); /* wakes one thread */
void ggl_os_cond_broadcast(os_cond *c);

/* Starts run(arg), whose result nobody reads. stack: the bytes of its stack; 0: the system's number. Each thread that was
 * started is joined once. False: the system has no memory or no room for a thread. */
bool ggl_os_thread_start(os_thread *t, void *(*run)(void *arg), void *arg, size_t stack);
/* The same for a thread that computes only: it calls nothing of the C library but functions of <string.h> and <math.h> that keep no
 * state, and of this header. WebAssembly has no other threads, because its C library has no locks. */
bool ggl_os_thread_start_bare(os_thread *t, void *(*run)(void *arg), void *arg);
/* The most bare threads that can run at the same time, if somebody else set that when the program began; INT_MAX: nobody did. */
int ggl_os_most_bare_threads(void);
/* Waits for the thread's end. */
void ggl_os_thread_join(os_thread t);
/* Lets another thread run on this processor, if one waits. */
void ggl_os_thread_yield(void);
/* Returns a number that no other thread has while this one runs. */
uintptr_t ggl_os_thread_number(void);

#ifdef __cplusplus
}
#endif
#endif
