/* Work that waits for its turn, on threads of its own, so that those of HTTP and of the engine answer meanwhile what else is asked of the
 * server: looking at pictures, fetching them, or hearing. */
#ifndef LLM_SERVER_TURN_QUEUE_H
#define LLM_SERVER_TURN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"

/* A piece of work; the beginning of what its owner knows of it. Once it was added, its functions are called on the queue's threads, or in
 * turn_queue_end. */
typedef struct turn {
    struct turn *next;
    uint64_t client; /* whose work it is */
    double looked;   /* when those that wait were last asked, in seconds */
    /* It has its turn. Frees it, or hands it on. */
    void (*run)(struct turn *t);
    /* It gets no turn: nobody wants it, or the queue ends. The same. */
    void (*leave)(struct turn *t);
    /* Called about once a second while it waits, and often while it runs. False: nobody wants it any more. */
    bool (*is_wanted)(struct turn *t);
} turn;

typedef struct turn_queue turn_queue;

/* At most n_most turns wait, half of them of one client, and n_threads run at once. what: "sounds", for messages; borrowed. NULL: there is no
 * memory, or no thread. */
turn_queue *turn_queue_new(size_t n_most, int n_threads, const char *what);
/* Ends the threads: turns that run are told by turn_queue_stops, those that wait leave. NULL is fine. */
void turn_queue_end(turn_queue *q);
void turn_queue_free(turn_queue *q); /* after its end; NULL is fine */

/* Adds a turn, which the queue has then. GGL_LIMIT: too many wait; GGL_CANCELLED: the queue has ended. Any thread. */
GGL_NODISCARD ggl_status turn_queue_add(turn_queue *q, turn *t, ggl_error *err);
/* True if the turn, which runs, is to be given up. Who runs it asks this often, on its thread. */
bool turn_queue_stops(turn_queue *q, turn *t);
/* What runs and waits now. Any thread. */
void turn_queue_count(turn_queue *q, size_t *n_running, size_t *n_waiting);

#endif
