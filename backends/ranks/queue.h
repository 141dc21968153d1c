/* A thread that carries out what is put, one after the other, and room for what is under way. */
#ifndef RANKS_QUEUE_H
#define RANKS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/internal/os_thread.h"

/* The first member of what is put. */
typedef struct queued {
    struct queued *next;
} queued;

typedef struct queue {
    void (*carry_out)(void *ctx, queued *item); /* owns the item */
    void *ctx;
    os_mutex lock;
    os_cond changed;
    queued *first, **end;
    os_thread thread;
    bool has_thread, is_busy, stops;
} queue;

void ggl_queue_init(queue *q, void (*carry_out)(void *ctx, queued *item), void *ctx);
/* Adds an item. It is carried out by a thread, which the first item starts; or at once if none can be started. One thread at a time
 * may put, drain and end. */
void ggl_queue_put(queue *q, queued *item);
/* Waits until all that was put is carried out. */
void ggl_queue_drain(queue *q);
/* True if nothing is waiting; what is carried out does not count. */
bool ggl_queue_is_empty(queue *q);
/* Drains the queue, and ends its thread. Another item may start it again, until ggl_queue_fini. */
void ggl_queue_stop(queue *q);
void ggl_queue_fini(queue *q);

/* Memory of things under way: `most` bytes, or `fewest` things, however large each is. */
typedef struct room {
    size_t most, fewest;
    os_mutex lock;
    os_cond changed;
    size_t size, n;
} room;

void ggl_room_init(room *r, size_t most, size_t fewest);
void ggl_room_fini(room *r);
/* Waits until there is room for a thing of that size, and takes it. */
void ggl_room_take(room *r, size_t size);
void ggl_room_give(room *r, size_t size);

#endif
