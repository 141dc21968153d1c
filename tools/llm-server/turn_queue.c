#include "turn_queue.h"

#include <stdatomic.h>

#include "common/process.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_thread.h"

struct turn_queue {
    size_t n_most;
    const char *what;
    os_thread *thread; /* [n_threads] */
    int n_threads;
    atomic_bool ends;

    os_mutex lock; /* of all below */
    os_cond has_news;
    turn *first, **last;
    size_t n_waiting, n_running;
};

/* Takes the first one that waits; NULL: the queue ends. */
static turn *take(turn_queue *q) {
    ggl_os_mutex_lock(&q->lock);
    while (!q->first && !q->ends)
        ggl_os_cond_wait(&q->has_news, &q->lock);
    turn *t = q->ends ? NULL : q->first;
    if (t) {
        q->first = t->next;
        q->last = q->first ? q->last : &q->first;
        q->n_waiting--;
        q->n_running++;
    }
    ggl_os_mutex_unlock(&q->lock);
    return t;
}

/* Takes all that nobody wants any more, or all. */
static turn *take_left(turn_queue *q, bool all) {
    turn *left = NULL, **end = &left;
    ggl_os_mutex_lock(&q->lock);
    q->last = &q->first;
    for (turn *t = q->first, *next; t; t = next) {
        const bool stays = !all && t->is_wanted(t);
        turn ***to = stays ? &q->last : &end;
        next = t->next;
        **to = t;
        *to = &t->next;
        q->n_waiting -= !stays;
    }
    *q->last = *end = NULL;
    ggl_os_mutex_unlock(&q->lock);
    return left;
}

static void leave_all(turn *t) {
    for (turn *next; t; t = next) {
        next = t->next;
        t->leave(t);
    }
}

static void *run(void *arg) {
    turn_queue *q = arg;
    turn *t;
    while ((t = take(q))) {
        t->looked = ggl_os_seconds();
        t->run(t);
        ggl_os_mutex_lock(&q->lock);
        q->n_running--;
        ggl_os_mutex_unlock(&q->lock);
    }
    return NULL;
}

bool turn_queue_stops(turn_queue *q, turn *t) {
    const double now = ggl_os_seconds();
    if (now - t->looked >= 1) {
        t->looked = now;
        leave_all(take_left(q, false));
    }
    return q->ends || !t->is_wanted(t);
}

ggl_status turn_queue_add(turn_queue *q, turn *t, ggl_error *err) {
    size_t n_own = 0;
    ggl_status st = GGL_OK;
    t->next = NULL;
    ggl_os_mutex_lock(&q->lock);
    for (const turn *x = q->first; x; x = x->next)
        n_own += x->client == t->client;
    if (q->ends)
        st = ggl_fail(err, GGL_CANCELLED, "the server is ending");
    else if (q->n_waiting >= q->n_most)
        st = ggl_fail(err, GGL_LIMIT, "%zu %s wait already (--queue); try again later",
                      q->n_waiting, q->what);
    else if (n_own >= (q->n_most + 1) / 2)
        st = ggl_fail(err, GGL_LIMIT,
                      "%zu %s of this client wait already, half of --queue; try again later", n_own,
                      q->what);
    if (st == GGL_OK) {
        *q->last = t;
        q->last = &t->next;
        q->n_waiting++;
        ggl_os_cond_signal(&q->has_news);
    }
    ggl_os_mutex_unlock(&q->lock);
    return st;
}

void turn_queue_count(turn_queue *q, size_t *n_running, size_t *n_waiting) {
    ggl_os_mutex_lock(&q->lock);
    *n_running = q->n_running;
    *n_waiting = q->n_waiting;
    ggl_os_mutex_unlock(&q->lock);
}

turn_queue *turn_queue_new(size_t n_most, int n_threads, const char *what) {
    turn_queue *q = ggl_calloc(1, sizeof *q);
    if (!q)
        return NULL;
    q->n_most = n_most;
    q->what = what;
    q->last = &q->first;
    ggl_os_mutex_init(&q->lock);
    ggl_os_cond_init(&q->has_news);
    q->thread = ggl_calloc((size_t)n_threads, sizeof *q->thread);
    while (q->thread && q->n_threads < n_threads &&
           ggl_os_thread_start(&q->thread[q->n_threads], run, q, 0))
        q->n_threads++;
    if (q->n_threads == n_threads)
        return q;
    turn_queue_end(q);
    turn_queue_free(q);
    return NULL;
}

void turn_queue_end(turn_queue *q) {
    if (!q || q->ends)
        return;
    ggl_os_mutex_lock(&q->lock);
    q->ends = true;
    ggl_os_cond_broadcast(&q->has_news);
    ggl_os_mutex_unlock(&q->lock);
    for (int i = 0; i < q->n_threads; i++)
        ggl_os_thread_join(q->thread[i]);
    leave_all(take_left(q, true));
}

void turn_queue_free(turn_queue *q) {
    if (!q)
        return;
    ggl_os_cond_destroy(&q->has_news);
    ggl_os_mutex_destroy(&q->lock);
    ggl_free(q->thread);
    ggl_free(q);
}
