#include "queue.h"

/* --- the queue ---------------------------------------------------------------------------------- */

static void *work(void *arg) {
    queue *q = arg;
    ggl_os_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first && !q->stops)
            ggl_os_cond_wait(&q->changed, &q->lock);
        queued *item = q->first;
        if (!item)
            break;
        if (!(q->first = item->next))
            q->end = &q->first;
        q->is_busy = true;
        ggl_os_mutex_unlock(&q->lock);
        q->carry_out(q->ctx, item);
        ggl_os_mutex_lock(&q->lock);
        q->is_busy = false;
        ggl_os_cond_broadcast(&q->changed);
    }
    ggl_os_mutex_unlock(&q->lock);
    return NULL;
}

void ggl_queue_init(queue *q, void (*carry_out)(void *ctx, queued *item), void *ctx) {
    *q = (queue){.carry_out = carry_out, .ctx = ctx};
    q->end = &q->first;
    ggl_os_mutex_init(&q->lock);
    ggl_os_cond_init(&q->changed);
}

void ggl_queue_put(queue *q, queued *item) {
    if (!q->has_thread)
        q->has_thread = ggl_os_thread_start(&q->thread, work, q, 0);
    if (!q->has_thread) {
        q->carry_out(q->ctx, item);
        return;
    }
    item->next = NULL;
    ggl_os_mutex_lock(&q->lock);
    *q->end = item;
    q->end = &item->next;
    ggl_os_cond_broadcast(&q->changed);
    ggl_os_mutex_unlock(&q->lock);
}

void ggl_queue_drain(queue *q) {
    if (!q->has_thread)
        return;
    ggl_os_mutex_lock(&q->lock);
    while (q->first || q->is_busy)
        ggl_os_cond_wait(&q->changed, &q->lock);
    ggl_os_mutex_unlock(&q->lock);
}

bool ggl_queue_is_empty(queue *q) {
    ggl_os_mutex_lock(&q->lock);
    const bool is_empty = !q->first;
    ggl_os_mutex_unlock(&q->lock);
    return is_empty;
}

void ggl_queue_stop(queue *q) {
    if (!q->has_thread)
        return;
    ggl_os_mutex_lock(&q->lock);
    q->stops = true;
    ggl_os_cond_broadcast(&q->changed);
    ggl_os_mutex_unlock(&q->lock);
    ggl_os_thread_join(q->thread);
    q->has_thread = q->stops = false;
}

void ggl_queue_fini(queue *q) {
    ggl_queue_stop(q);
    ggl_os_mutex_destroy(&q->lock);
    ggl_os_cond_destroy(&q->changed);
}

/* --- room --------------------------------------------------------------------------------------- */

void ggl_room_init(room *r, size_t most, size_t fewest) {
    *r = (room){.most = most, .fewest = fewest};
    ggl_os_mutex_init(&r->lock);
    ggl_os_cond_init(&r->changed);
}

void ggl_room_fini(room *r) {
    ggl_os_mutex_destroy(&r->lock);
    ggl_os_cond_destroy(&r->changed);
}

void ggl_room_take(room *r, size_t size) {
    ggl_os_mutex_lock(&r->lock);
    while (r->n >= r->fewest && (size > r->most || r->size > r->most - size))
        ggl_os_cond_wait(&r->changed, &r->lock);
    r->size += size;
    r->n++;
    ggl_os_mutex_unlock(&r->lock);
}

void ggl_room_give(room *r, size_t size) {
    ggl_os_mutex_lock(&r->lock);
    r->size -= size;
    r->n--;
    ggl_os_cond_broadcast(&r->changed);
    ggl_os_mutex_unlock(&r->lock);
}
