/* os_thread.h for WebAssembly, whose C library knows no threads. Mutexes and conditions are numbers in memory, on which the machine waits.
 *
 * JavaScript starts threads before the program runs (npm/threads.mjs): each is the same module, with the same memory and a stack of its
 * own, in a worker. It calls serve(), which waits for what it is to run. None of them may call what changes the C library's state, which has no
 * locks, so only ggl_os_thread_start_bare() uses them. A module whose memory is not shared has no such threads. There the program is
 * alone: nobody else ever holds a mutex, and a wait would never end. */
#include "ggl/internal/os_thread.h"

#include <stdlib.h>

#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_process.h"

enum { FREE_MUTEX, HELD, HELD_AND_WANTED };
enum { MOST_THREADS = 126, STACK = 1 << 20 /* kernels use 45 KB */ };

/* What a thread is to do. Its state becomes each of these in turn, and IDLE again after DONE. */
enum { IDLE, GIVEN, RUNNING, DONE };
static struct {
    int32_t state;
    void *(*run)(void *arg);
    void *arg;
    char *stack;
} slot[MOST_THREADS];
/* How many there are, and how many processors the machine has; they change before the program runs. */
static int n_slots, n_processors = 1;

static int32_t load(const int32_t *at) {
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static void store(int32_t *at, int32_t to) {
    __atomic_store_n(at, to, __ATOMIC_SEQ_CST);
}

static bool change(int32_t *at, int32_t from, int32_t to) {
    return __atomic_compare_exchange_n(at, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Waits while *at is `is`, until somebody wakes who waits there, or for ns nanoseconds (-1: no limit). Memory that is not shared cannot
 * be waited for, and nobody would change it: this is a mistake in the program, and an end is better than a page that hangs.
 *
 * It is no part of any other function, because the first compiler of the machine in node 20 forgets a function's variables in this
 * instruction: locks then wait for address 0. */
__attribute__((noinline)) static void wait(int32_t *at, int32_t is, int64_t ns) {
    if (n_slots == 0)
        abort();
    (void)__builtin_wasm_memory_atomic_wait32(at, is, ns);
}

static void wake(int32_t *at, uint32_t most) {
    (void)__builtin_wasm_memory_atomic_notify(at, most);
}

/* --- mutexes and conditions ------------------------------------------------------------------ */

void ggl_os_mutex_init(os_mutex *m) {
    *m = (os_mutex){0};
}

void ggl_os_mutex_destroy(os_mutex *m) {
    (void)m;
}

void ggl_os_mutex_lock(os_mutex *m) {
    if (change(&m->state, FREE_MUTEX, HELD))
        return;
    while (__atomic_exchange_n(&m->state, HELD_AND_WANTED, __ATOMIC_SEQ_CST) != FREE_MUTEX)
        wait(&m->state, HELD_AND_WANTED, -1);
}

void ggl_os_mutex_unlock(os_mutex *m) {
    if (__atomic_exchange_n(&m->state, FREE_MUTEX, __ATOMIC_SEQ_CST) == HELD_AND_WANTED)
        wake(&m->state, 1);
}

bool ggl_os_mutex_try(os_mutex *m) {
    return change(&m->state, FREE_MUTEX, HELD);
}

void ggl_os_cond_init(os_cond *c) {
    *c = (os_cond){0};
}

void ggl_os_cond_destroy(os_cond *c) {
    (void)c;
}

void ggl_os_cond_wait(os_cond *c, os_mutex *m) {
    const int32_t before = load(&c->signals);
    ggl_os_mutex_unlock(m);
    wait(&c->signals, before, -1);
    ggl_os_mutex_lock(m);
}

bool ggl_os_cond_wait_until(os_cond *c, os_mutex *m, int64_t ns) {
    const int32_t before = load(&c->signals);
    const int64_t left = ns - ggl_os_clock();
    if (left > 0) {
        ggl_os_mutex_unlock(m);
        if (n_slots > 0)
            wait(&c->signals, before, left);
        else
            ggl_os_sleep(left);
        ggl_os_mutex_lock(m);
    }
    return ggl_os_clock() < ns;
}

static void change_and_wake(os_cond *c, uint32_t most) {
    __atomic_fetch_add(&c->signals, 1, __ATOMIC_SEQ_CST);
    wake(&c->signals, most);
}

void ggl_os_cond_signal(os_cond *c) {
    change_and_wake(c, 1);
}

void ggl_os_cond_broadcast(os_cond *c) {
    change_and_wake(c, UINT32_MAX);
}

/* --- threads --------------------------------------------------------------------------------- */

bool ggl_os_thread_start(os_thread *t, void *(*run)(void *arg), void *arg, size_t stack) {
    (void)t, (void)run, (void)arg, (void)stack;
    return false;
}

bool ggl_os_thread_start_bare(os_thread *t, void *(*run)(void *arg), void *arg) {
    for (int i = 0; i < n_slots; i++)
        if (load(&slot[i].state) == IDLE) {
            slot[i].run = run;
            slot[i].arg = arg;
            store(&slot[i].state, GIVEN);
            wake(&slot[i].state, 1);
            *t = (os_thread){i};
            return true;
        }
    return false;
}

int ggl_os_most_bare_threads(void) {
    return n_slots;
}

/* A worker may not have come yet, or never come: then it is no longer given what to do. */
void ggl_os_thread_join(os_thread t) {
    int32_t *state = &slot[t.slot].state;
    if (change(state, GIVEN, IDLE))
        return;
    while (load(state) == RUNNING)
        wait(state, RUNNING, -1);
    store(state, IDLE);
}

/* Waits for a moment, as a worker has no other way to let others run. */
void ggl_os_thread_yield(void) {
    static int32_t never;
    enum { MOMENT = 10000 /* ns */ };
    if (n_slots > 0)
        (void)__builtin_wasm_memory_atomic_wait32(&never, 0, MOMENT);
}

/* Threads differ by the stacks on which their variables lie. */
uintptr_t ggl_os_thread_number(void) {
    const char here = 0;
    const uintptr_t at = (uintptr_t)&here;
    for (int i = 0; i < n_slots; i++)
        if (at - (uintptr_t)slot[i].stack < STACK)
            return (uintptr_t)i + 2;
    return 1;
}

int ggl_os_n_processors(void) {
    return n_processors;
}

/* --- what JavaScript calls ------------------------------------------------------------------- */

/* Makes room for one more thread, before the program runs: returns the upper end of its stack, or NULL if there is no memory, or if
 * there are as many as can be. Threads have the numbers 0, 1, .. in the order of these calls. processors: how many the program is to think
 * that there are. */
static void *add(int processors) {
    if (n_slots == MOST_THREADS || !(slot[n_slots].stack = malloc(STACK)))
        return NULL;
    n_processors = processors;
    return slot[n_slots++].stack +
           STACK; /* malloc's addresses are multiples of 16, as a stack's end has to be */
}

/* Runs what thread k is given, one thing after the other, without end. */
static void serve(int k) {
    for (;;) {
        for (int32_t is;
             (is = load(&slot[k].state)) != GIVEN || !change(&slot[k].state, is, RUNNING);)
            if (is != GIVEN)
                wait(&slot[k].state, is, -1);
        (void)slot[k].run(slot[k].arg);
        store(&slot[k].state, DONE);
        wake(&slot[k].state, UINT32_MAX);
    }
}

/* Functions that a module exports run its constructors again, so JavaScript takes these from the module's table of functions. */
typedef struct os_threads_host {
    void *(*add)(int processors);
    void (*serve)(int k);
} os_threads_host;
extern const os_threads_host ggl_os_threads_host;
const os_threads_host ggl_os_threads_host = {add, serve};
