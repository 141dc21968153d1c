#include "queue.h"

/* --- the queue ---------------------------------------------------------------------------------- */

static void *work(void *arg) {
    queue *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first && !q->stops)
            pthread_cond_wait(&q->changed, &q->lock);
        queued *item = q->first;
        if (!item)
            break;
        if (!(q->first = item->next))
            q->end = &q->first;
        q->is_busy = true;
        pthread_mutex_unlock(&q->lock);
        q->carry_out(q->ctx, item);
        pthread_mutex_lock(&q->lock);
        q->is_busy = false;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

void ggl_queue_init(queue *q, void (*carry_out)(void *ctx, queued *item), void *ctx) {
    *q = (queue){.carry_out = carry_out, .ctx = ctx};
    q->end = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
}

void ggl_queue_put(queue *q, queued *item) {
    if (!q->has_thread)
        q->has_thread = pthread_create(&q->thread, NULL, work, q) == 0;
    if (!q->has_thread) {
        q->carry_out(q->ctx, item);
        return;
    }
    item->next = NULL;
    pthread_mutex_lock(&q->lock);
    *q->end = item;
    q->end = &item->next;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void ggl_queue_drain(queue *q) {
    if (!q->has_thread)
        return;
    pthread_mutex_lock(&q->lock);
    while (q->first || q->is_busy)
        pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

bool ggl_queue_is_empty(queue *q) {
    pthread_mutex_lock(&q->lock);
    const bool is_empty = !q->first;
    pthread_mutex_unlock(&q->lock);
    return is_empty;
}

void ggl_queue_stop(queue *q) {
    if (!q->has_thread)
        return;
    pthread_mutex_lock(&q->lock);
    q->stops = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    q->has_thread = q->stops = false;
}

void ggl_queue_fini(queue *q) {
    ggl_queue_stop(q);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->changed);
}

/* --- room --------------------------------------------------------------------------------------- */

void ggl_room_init(room *r, size_t most, size_t fewest) {
    *r = (room){.most = most, .fewest = fewest};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
}

void ggl_room_fini(room *r) {
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
}

void ggl_room_take(room *r, size_t size) {
    pthread_mutex_lock(&r->lock);
    while (r->n >= r->fewest && (size > r->most || r->size > r->most - size))
        pthread_cond_wait(&r->changed, &r->lock);
    r->size += size;
    r->n++;
    pthread_mutex_unlock(&r->lock);
}

void ggl_room_give(room *r, size_t size) {
    pthread_mutex_lock(&r->lock);
    r->size -= size;
    r->n--;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}
