#include "speech_queue.h"

#include <pthread.h>
#include <stdatomic.h>

#include "common/process.h"
#include "ggl/alloc.h"

struct speech_queue {
    size_t n_most;
    pthread_t thread;
    atomic_bool ends;

    speech_turn *running; /* these two belong to the queue's thread */
    double looked;        /* when it looked at those that wait, in seconds */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_news;
    speech_turn *first, **last;
    size_t n_waiting, n_running;
};

/* Takes the first one that waits; NULL: the queue ends. */
static speech_turn *take(speech_queue *q) {
    pthread_mutex_lock(&q->lock);
    q->n_running = 0;
    while (!q->first && !q->ends)
        pthread_cond_wait(&q->has_news, &q->lock);
    speech_turn *t = q->ends ? NULL : q->first;
    if (t) {
        q->first = t->next;
        q->last = q->first ? q->last : &q->first;
        q->n_waiting--;
        q->n_running = 1;
    }
    pthread_mutex_unlock(&q->lock);
    return t;
}

/* Takes all that nobody wants any more, or all. */
static speech_turn *take_left(speech_queue *q, bool all) {
    speech_turn *left = NULL, **last = &left;
    pthread_mutex_lock(&q->lock);
    for (speech_turn **at = &q->first; *at;) {
        speech_turn *t = *at;
        if (!all && t->is_wanted(t)) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        t->next = NULL;
        *last = t;
        last = &t->next;
        q->n_waiting--;
    }
    q->last = &q->first;
    while (*q->last)
        q->last = &(*q->last)->next;
    pthread_mutex_unlock(&q->lock);
    return left;
}

static void leave_all(speech_turn *t) {
    for (speech_turn *next; t; t = next) {
        next = t->next;
        t->leave(t);
    }
}

static void *run(void *arg) {
    speech_queue *q = arg;
    while ((q->running = take(q))) {
        q->looked = process_seconds();
        q->running->run(q->running);
    }
    leave_all(take_left(q, true));
    return NULL;
}

bool speech_queue_stops(speech_queue *q) {
    const double now = process_seconds();
    if (now - q->looked >= 1) {
        q->looked = now;
        leave_all(take_left(q, false));
    }
    return q->ends || !q->running->is_wanted(q->running);
}

ggl_status speech_queue_add(speech_queue *q, speech_turn *t, ggl_error *err) {
    size_t n_own = 0;
    ggl_status st = GGL_OK;
    t->next = NULL;
    pthread_mutex_lock(&q->lock);
    for (const speech_turn *x = q->first; x; x = x->next)
        n_own += x->client == t->client;
    if (q->ends)
        st = ggl_fail(err, GGL_CANCELLED, "the server is ending");
    else if (q->n_waiting >= q->n_most)
        st = ggl_fail(err, GGL_LIMIT, "%zu sounds wait already (--queue); try again later",
                      q->n_waiting);
    else if (n_own >= (q->n_most + 1) / 2)
        st = ggl_fail(err, GGL_LIMIT,
                      "%zu sounds of this client wait already, half of --queue; try again later",
                      n_own);
    if (st == GGL_OK) {
        *q->last = t;
        q->last = &t->next;
        q->n_waiting++;
        pthread_cond_signal(&q->has_news);
    }
    pthread_mutex_unlock(&q->lock);
    return st;
}

void speech_queue_count(speech_queue *q, size_t *n_running, size_t *n_waiting) {
    pthread_mutex_lock(&q->lock);
    *n_running = q->n_running;
    *n_waiting = q->n_waiting;
    pthread_mutex_unlock(&q->lock);
}

speech_queue *speech_queue_new(size_t n_most) {
    speech_queue *q = ggl_calloc(1, sizeof *q);
    if (!q)
        return NULL;
    q->n_most = n_most;
    q->last = &q->first;
    (void)pthread_mutex_init(&q->lock, NULL);
    (void)pthread_cond_init(&q->has_news, NULL);
    if (pthread_create(&q->thread, NULL, run, q) == 0)
        return q;
    speech_queue_free(q);
    return NULL;
}

void speech_queue_end(speech_queue *q) {
    if (!q || q->ends)
        return;
    pthread_mutex_lock(&q->lock);
    q->ends = true;
    pthread_cond_signal(&q->has_news);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
}

void speech_queue_free(speech_queue *q) {
    if (!q)
        return;
    pthread_cond_destroy(&q->has_news);
    pthread_mutex_destroy(&q->lock);
    ggl_free(q);
}
