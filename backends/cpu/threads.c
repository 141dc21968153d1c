#include "threads.h"

#include <limits.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_thread.h"

enum {
    SPIN = 3000, /* times that a thread polls before it sleeps: about 50 us, the usual pause between
                    two steps */
    TEAM = 16,   /* most threads of a team. A counter gives out a chunk in about 30 ns, and a chunk
                    takes at least 600 */
    MAX_THREADS = 1023
};
_Static_assert(CPU_MAX_NODES + MAX_THREADS / TEAM < CPU_MAX_TEAMS, "teams of all nodes");

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

/* A team, and its units of the task. */
typedef struct team {
    _Alignas(64) atomic_int_least64_t next; /* the first unit that no thread has taken */
    int64_t end;
    int node, first, n; /* the node's number, its first team, and how many teams it has */
} team;

/* A thread of the pool; the caller's is none. */
typedef struct worker {
    struct cpu_pool *pool;
    int index;
    os_thread thread;
} worker;

struct cpu_pool {
    int n_threads;
    int spin;               /* SPIN, or 0 if there are more threads than cores */
    worker *worker;         /* [n_threads]; that of the caller is not used */
    const cpu_nodes *nodes; /* NULL: there is one */
    team *team;             /* [n_teams], ascending by node */
    int n_teams;            /* at least 1 */
    uint8_t *team_of;       /* thread -> team */
    /* The task. Only the caller writes it, while no task is open and no thread takes part. */
    cpu_pool_fn *fn;
    void *ctx;
    int64_t chunk;
    _Alignas(64) atomic_uint_least64_t state;
    _Alignas(64) atomic_int asleep; /* threads that sleep, or are about to */
    /* Threads that sleep because tasks do not admit them, or are about to: they would only take a
     * core from others. */
    atomic_int excluded;
    int limit; /* threads that may take part in the last task; the caller's */
    atomic_bool stop;
    os_mutex lock;
    os_cond wake, wake_excluded;
};

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes and runs chunks of a team's units until none are left. */
static void take_from(cpu_pool *p, team *t, int thread) {
    for (;;) {
        int64_t first = atomic_fetch_add_explicit(&t->next, p->chunk, memory_order_relaxed);
        if (first >= t->end)
            return;
        p->fn(p->ctx, first, first + p->chunk < t->end ? first + p->chunk : t->end, thread);
    }
}

/* Takes and runs chunks of all other teams' units, those of the node's own first. */
static void take_from_others(cpu_pool *p, const team *own, int thread) {
    for (int i = 1; i < p->n_teams; i++) {
        const bool near = i < own->n;
        team *t = &p->team[near ? own->first + ((int)(own - p->team) - own->first + i) % own->n
                                : (own->first + i) % p->n_teams];
        if (atomic_load_explicit(&t->next, memory_order_relaxed) < t->end)
            take_from(p, t, thread);
    }
}

/* Takes and runs chunks of units until none are left. */
static void take_units(cpu_pool *p, int thread) {
    team *own = &p->team[p->team_of[thread]];
    take_from(p, own, thread);
    if (p->n_teams > 1)
        take_from_others(p, own, thread);
}

/* True if the last task does not admit thread `index`. */
static bool is_excluded(uint_least64_t state, int index) {
    const int limit =
        (int)(state >> LIMIT_SHIFT & MAX_THREADS); /* 0: it was only to wake threads */
    return limit > 0 && index >= limit;
}

/* Sleeps until a task admits thread `index`, or until the pool stops; returns the state. */
static uint_least64_t wait_excluded(cpu_pool *p, int index) {
    uint_least64_t now;
    ggl_os_mutex_lock(&p->lock);
    atomic_fetch_add(&p->excluded, 1); /* before it reads the state, as below */
    while (is_excluded(now = atomic_load(&p->state), index) && !atomic_load(&p->stop))
        ggl_os_cond_wait(&p->wake_excluded, &p->lock);
    atomic_fetch_sub(&p->excluded, 1);
    ggl_os_mutex_unlock(&p->lock);
    return now;
}

/* Waits until the task number differs from `seen`, or until the pool stops; returns the state.
 * Spins first, then sleeps. */
static uint_least64_t wait_for_task(cpu_pool *p, uint_least64_t seen, int index) {
    uint_least64_t now = atomic_load_explicit(&p->state, memory_order_acquire);
    if (is_excluded(now, index))
        return wait_excluded(p, index);
    for (int i = 0; i < p->spin; i++) {
        now = atomic_load_explicit(&p->state, memory_order_acquire);
        if (now >> NUMBER_SHIFT != seen || atomic_load_explicit(&p->stop, memory_order_relaxed))
            return now;
        pause_briefly();
    }
    ggl_os_mutex_lock(&p->lock);
    /* The order matters: this thread adds itself and then reads the state; the caller sets the
     * state and then reads `asleep`. So one of them sees the other, and no wake-up is lost. */
    atomic_fetch_add(&p->asleep, 1);
    while ((now = atomic_load(&p->state)) >> NUMBER_SHIFT == seen && !atomic_load(&p->stop))
        ggl_os_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    ggl_os_mutex_unlock(&p->lock);
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

/* The main function of a thread; arg: its worker. It has to be a bare one (os_thread.h), and so have kernels. */
static void *worker_main(void *arg) {
    const worker *w = arg;
    cpu_pool *p = w->pool;
    uint_least64_t seen = 0;
    if (p->nodes)
        ggl_cpu_node_bind(&p->nodes->at[p->team[p->team_of[w->index]].node]);
    ggl_cpu_float_mode_set();
    for (;;) {
        uint_least64_t now = wait_for_task(p, seen, w->index);
        if (atomic_load(&p->stop))
            return NULL;
        seen = now >> NUMBER_SHIFT;
        if (join_task(p, now, w->index)) {
            take_units(p, w->index);
            atomic_fetch_sub_explicit(&p->state, 1, memory_order_release);
        }
    }
}

/* Wakes the threads that sleep; called after a new task number has been set. */
static void wake_all(cpu_pool *p) {
    if (atomic_load(&p->asleep) > 0) {
        ggl_os_mutex_lock(&p->lock);
        ggl_os_cond_broadcast(&p->wake);
        ggl_os_mutex_unlock(&p->lock);
    }
}

/* Wakes the threads that the last tasks excluded, if the new one admits more. */
static void admit(cpu_pool *p, int n_threads) {
    if (n_threads > p->limit && atomic_load(&p->excluded) > 0) {
        ggl_os_mutex_lock(&p->lock);
        ggl_os_cond_broadcast(&p->wake_excluded);
        ggl_os_mutex_unlock(&p->lock);
    }
    p->limit = n_threads;
}

void ggl_cpu_pool_spread(const cpu_pool *p, int n_threads, cpu_spread *out) {
    n_threads = n_threads < p->n_threads ? n_threads : p->n_threads;
    out->n_teams = p->n_teams;
    for (int k = 0; k <= p->n_teams; k++)
        out->before[k] = k < p->n_teams ? 0 : n_threads;
    if (p->n_teams == 1)
        return;
    for (int i = 0; i < n_threads; i++)
        out->before[p->team_of[i]]++;
    for (int k = p->n_teams - 1, after = n_threads; k >= 0; k--)
        out->before[k] = after -= out->before[k];
}

/* Sets the units of each team. */
static void set_units(cpu_pool *p, int n_threads, int64_t n, const int64_t *end) {
    cpu_spread s;
    if (!end)
        ggl_cpu_pool_spread(p, n_threads, &s);
    int64_t at = 0;
    for (int k = 0; k < p->n_teams; k++) {
        atomic_store_explicit(&p->team[k].next, at, memory_order_relaxed);
        at = end ? end[k] : n * s.before[k + 1] / s.before[p->n_teams];
        p->team[k].end = at;
    }
}

void ggl_cpu_pool_run(cpu_pool *p, int n_threads, cpu_pool_fn *fn, void *ctx, int64_t n,
                      int64_t chunk, const int64_t *end) {
    if (n_threads > p->n_threads)
        n_threads = p->n_threads;
    if (n_threads <= 1 || n <= chunk) {
        if (n > 0)
            fn(ctx, 0, n, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->chunk = chunk;
    set_units(p, n_threads, n, end);
    uint_least64_t number = atomic_load_explicit(&p->state, memory_order_relaxed) >> NUMBER_SHIFT;
    atomic_store(&p->state,
                 (number + 1) << NUMBER_SHIFT | (uint_least64_t)n_threads << LIMIT_SHIFT | OPEN);
    wake_all(p);
    admit(p, n_threads);
    take_units(p, 0);
    uint_least64_t now = atomic_fetch_and(&p->state, ~OPEN);
    for (int i = 0; now & ACTIVE; i++) {
        if (i < SPIN)
            pause_briefly();
        else
            ggl_os_thread_yield(); /* the last thread may be waiting for this very core */
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

int ggl_cpu_pool_excluded(const cpu_pool *p) {
    return atomic_load(&((cpu_pool *)(uintptr_t)p)->excluded);
}

bool ggl_cpu_pool_sleeps(const cpu_pool *p) {
    return atomic_load_explicit(&((cpu_pool *)(uintptr_t)p)->asleep, memory_order_relaxed) > 0;
}

/* Sets node_of[i] to the node of thread i: the one that has the fewest threads for its cores. Sets count[k] to the threads of
 * node k. */
static void assign_nodes(const cpu_nodes *nodes, int n_threads, uint8_t *node_of, int *count) {
    for (int i = 0; i < n_threads; i++) {
        int best = 0;
        for (int k = 1; nodes && k < nodes->n; k++)
            if ((count[k] + 1) * nodes->at[best].n_cores < (count[best] + 1) * nodes->at[k].n_cores)
                best = k;
        count[best]++;
        node_of[i] = (uint8_t)best;
    }
}

/* Forms the teams; false: no memory. */
static bool form_teams(cpu_pool *p, int n_threads, const cpu_nodes *nodes) {
    int count[CPU_MAX_NODES] = {0}, seen[CPU_MAX_NODES] = {0}, first[CPU_MAX_NODES];
    p->nodes = nodes && nodes->n > 1 ? nodes : NULL;
    p->team_of = ggl_calloc((size_t)n_threads, sizeof *p->team_of);
    p->team = ggl_aligned_calloc(64, CPU_MAX_TEAMS * sizeof *p->team);
    if (!p->team_of || !p->team)
        return false;
    assign_nodes(p->nodes, n_threads, p->team_of, count);
    for (int node = 0; node < CPU_MAX_NODES; node++) {
        const int n = (count[node] + TEAM - 1) / TEAM;
        first[node] = p->n_teams;
        for (int k = 0; k < n; k++)
            p->team[p->n_teams++] = (team){.node = node, .first = first[node], .n = n};
    }
    for (int i = 0; i < n_threads; i++) {
        const int node = p->team_of[i];
        p->team_of[i] =
            (uint8_t)(first[node] + seen[node]++ * p->team[first[node]].n / count[node]);
    }
    return true;
}

ggl_status ggl_cpu_pool_open(cpu_pool **out, int n_threads, const cpu_nodes *nodes,
                             ggl_error *err) {
    *out = NULL;
    n_threads = n_threads < 1 ? 1 : n_threads > MAX_THREADS ? MAX_THREADS : n_threads;
    if (n_threads > 1 && n_threads > ggl_cpu_allowed() && ggl_os_most_bare_threads() < INT_MAX)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "this program was started with %d thread%s, and cannot have %d: -t %d, or, "
                        "for up to 64 of "
                        "them, node run.mjs --threads N PROGRAM.wasm",
                        ggl_cpu_allowed(), ggl_cpu_allowed() == 1 ? "" : "s", n_threads,
                        ggl_cpu_allowed());
    cpu_pool *p = ggl_aligned_calloc(64, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %d threads", n_threads);
    p->n_threads = 1;
    p->spin = n_threads <= ggl_cpu_allowed() ? SPIN : 0;
    ggl_os_mutex_init(&p->lock);
    ggl_os_cond_init(&p->wake);
    ggl_os_cond_init(&p->wake_excluded);
    p->worker = ggl_calloc((size_t)n_threads, sizeof *p->worker);
    if (!p->worker || !form_teams(p, n_threads, nodes)) {
        ggl_cpu_pool_close(p);
        return ggl_fail(err, GGL_NOMEM, "out of memory for %d threads", n_threads);
    }
    for (int i = 1; i < n_threads; i++) {
        worker *w = &p->worker[i];
        w->pool = p;
        w->index = i;
        if (!ggl_os_thread_start_bare(&w->thread, worker_main, w)) {
            ggl_cpu_pool_close(p);
            return ggl_fail(
                err, GGL_NOMEM, "thread %d of %d could not be started%s", i + 1, n_threads,
                ggl_os_most_bare_threads() < INT_MAX
                    ? ": other models of this program use those with which it was started"
                    : "");
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
    ggl_os_mutex_lock(&p->lock);
    ggl_os_cond_broadcast(&p->wake);
    ggl_os_cond_broadcast(&p->wake_excluded);
    ggl_os_mutex_unlock(&p->lock);
    for (int i = 1; i < p->n_threads; i++)
        ggl_os_thread_join(p->worker[i].thread);
    ggl_os_cond_destroy(&p->wake);
    ggl_os_cond_destroy(&p->wake_excluded);
    ggl_os_mutex_destroy(&p->lock);
    ggl_free(p->worker);
    ggl_free(p->team_of);
    ggl_aligned_free(p->team);
    ggl_aligned_free(p);
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
