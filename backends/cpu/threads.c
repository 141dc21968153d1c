#include "threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggl/alloc.h"

enum {
    SPIN = 3000, /* times that a thread polls before it sleeps: about 50 us, the usual pause between
                    two steps */
    MAX_THREADS = 1023
};

/* The state of the pool, in one word, so that a thread can check that a task is open and join it in
 * one atomic step:
 *
 *   | task number | threads that may take part: 10 bits | open: 1 | threads taking part now: 10 |
 *
 * The caller is not counted. A thread that comes late, because it slept or was not scheduled, finds
 * the task closed, and the caller does not wait for it. */
#define ACTIVE       ((uint_least64_t)MAX_THREADS)
#define OPEN         ((uint_least64_t)1 << 10)
#define LIMIT_SHIFT  11
#define NUMBER_SHIFT 21

struct cpu_pool {
    int n_threads;
    int spin; /* SPIN, or 0 if there are more threads than cores */
    pthread_t *thread;
    /* The task. Only the caller writes it, while no task is open and no thread takes part. */
    cpu_pool_fn *fn;
    void *ctx;
    int64_t n, chunk;
    _Alignas(64) atomic_uint_least64_t state;
    _Alignas(64) atomic_int_least64_t next; /* the first unit that no thread has taken */
    _Alignas(64) atomic_int asleep;         /* threads that sleep, or are about to */
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

typedef struct worker {
    cpu_pool *pool;
    int index;
} worker;

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes and runs chunks of units until none are left. */
static void take_units(cpu_pool *p, int thread) {
    for (;;) {
        int64_t first = atomic_fetch_add_explicit(&p->next, p->chunk, memory_order_relaxed);
        if (first >= p->n)
            return;
        p->fn(p->ctx, first, first + p->chunk < p->n ? first + p->chunk : p->n, thread);
    }
}

/* Waits until the task number differs from `seen`, or until the pool stops; returns the state.
 * Spins first, then sleeps. */
static uint_least64_t wait_for_task(cpu_pool *p, uint_least64_t seen) {
    uint_least64_t now;
    for (int i = 0; i < p->spin; i++) {
        now = atomic_load_explicit(&p->state, memory_order_acquire);
        if (now >> NUMBER_SHIFT != seen || atomic_load_explicit(&p->stop, memory_order_relaxed))
            return now;
        pause_briefly();
    }
    pthread_mutex_lock(&p->lock);
    /* The order matters: this thread adds itself and then reads the state; the caller sets the
     * state and then reads `asleep`. So one of them sees the other, and no wake-up is lost. */
    atomic_fetch_add(&p->asleep, 1);
    while ((now = atomic_load(&p->state)) >> NUMBER_SHIFT == seen && !atomic_load(&p->stop))
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->lock);
    return now;
}

/* Joins the task of state `now` and returns true; false if the task is closed, or if it does not
 * admit thread `index`. */
static bool join_task(cpu_pool *p, uint_least64_t now, int index) {
    uint_least64_t number = now >> NUMBER_SHIFT;
    while ((now & OPEN) && now >> NUMBER_SHIFT == number &&
           index < (int)(now >> LIMIT_SHIFT & MAX_THREADS))
        if (atomic_compare_exchange_weak_explicit(&p->state, &now, now + 1, memory_order_acq_rel,
                                                  memory_order_acquire))
            return true;
    return false;
}

/* The main function of a thread; arg: its worker, which it frees. */
static void *worker_main(void *arg) {
    worker w = *(worker *)arg;
    ggl_free(arg);
    cpu_pool *p = w.pool;
    uint_least64_t seen = 0;
    ggl_cpu_float_mode_set();
    for (;;) {
        uint_least64_t now = wait_for_task(p, seen);
        if (atomic_load(&p->stop))
            return NULL;
        seen = now >> NUMBER_SHIFT;
        if (join_task(p, now, w.index)) {
            take_units(p, w.index);
            atomic_fetch_sub_explicit(&p->state, 1, memory_order_release);
        }
    }
}

/* Wakes the threads that sleep; called after a new task number has been set. */
static void wake_all(cpu_pool *p) {
    if (atomic_load(&p->asleep) > 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
    }
}

void ggl_cpu_pool_run(cpu_pool *p, int n_threads, cpu_pool_fn *fn, void *ctx, int64_t n,
                      int64_t chunk) {
    if (n_threads > p->n_threads)
        n_threads = p->n_threads;
    if (n_threads <= 1 || n <= chunk) {
        if (n > 0)
            fn(ctx, 0, n, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n = n;
    p->chunk = chunk;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    uint_least64_t number = atomic_load_explicit(&p->state, memory_order_relaxed) >> NUMBER_SHIFT;
    atomic_store(&p->state,
                 (number + 1) << NUMBER_SHIFT | (uint_least64_t)n_threads << LIMIT_SHIFT | OPEN);
    wake_all(p);
    take_units(p, 0);
    uint_least64_t now = atomic_fetch_and(&p->state, ~OPEN);
    for (int i = 0; now & ACTIVE; i++) {
        if (i < SPIN)
            pause_briefly();
        else
            sched_yield(); /* the last thread may be waiting for this very core */
        now = atomic_load_explicit(&p->state, memory_order_acquire);
    }
}

void ggl_cpu_pool_wake(cpu_pool *p) {
    if (!ggl_cpu_pool_sleeps(p))
        return;
    uint_least64_t number = atomic_load_explicit(&p->state, memory_order_relaxed) >> NUMBER_SHIFT;
    atomic_store(&p->state, (number + 1) << NUMBER_SHIFT); /* a new task, which is closed */
    wake_all(p);
}

bool ggl_cpu_pool_sleeps(const cpu_pool *p) {
    return atomic_load_explicit(&((cpu_pool *)(uintptr_t)p)->asleep, memory_order_relaxed) > 0;
}

ggl_status ggl_cpu_pool_open(cpu_pool **out, int n_threads, ggl_error *err) {
    *out = NULL;
    n_threads = n_threads < 1 ? 1 : n_threads > MAX_THREADS ? MAX_THREADS : n_threads;
    cpu_pool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %d threads", n_threads);
    memset(p, 0, sizeof *p);
    p->n_threads = 1;
    p->spin = n_threads <= sysconf(_SC_NPROCESSORS_ONLN) ? SPIN : 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->thread = ggl_calloc((size_t)n_threads, sizeof *p->thread);
    for (int i = 1; i < n_threads; i++) {
        worker *w = p->thread ? ggl_calloc(1, sizeof *w) : NULL;
        if (w)
            *w = (worker){p, i};
        if (!w || pthread_create(&p->thread[i], NULL, worker_main, w) != 0) {
            ggl_free(w);
            ggl_cpu_pool_close(p);
            return ggl_fail(err, GGL_NOMEM, "thread %d of %d could not be started", i + 1,
                            n_threads);
        }
        p->n_threads = i + 1;
    }
    *out = p;
    return GGL_OK;
}

void ggl_cpu_pool_close(cpu_pool *p) {
    if (!p)
        return;
    atomic_store(&p->stop, true);
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i < p->n_threads; i++)
        pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    ggl_free(p->thread);
    free(p);
}

/* --- floating-point mode ------------------------------------------------------------------- */

uint64_t ggl_cpu_float_mode_set(void) {
#if defined(__x86_64__)
    unsigned old = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80); /* all exceptions masked, nearest even, no FTZ, no DAZ */
    return old;
#elif defined(__aarch64__)
    uint64_t old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return old;
#else
    return 0;
#endif
}

void ggl_cpu_float_mode_restore(uint64_t mode) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
    (void)mode;
#endif
}
