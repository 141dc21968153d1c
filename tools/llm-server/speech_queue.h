/* Sounds that wait for their turn. A model hears one at a time, on a thread of its own, so that the engine's thread answers meanwhile what else
 * is asked of the server. */
#ifndef LLM_SERVER_SPEECH_QUEUE_H
#define LLM_SERVER_SPEECH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"

/* A sound; the beginning of what its owner knows of it. Once it was added, its functions are called on the queue's thread alone. */
typedef struct speech_turn {
    struct speech_turn *next;
    uint64_t client; /* whose sound it is */
    /* It has its turn. Frees it. */
    void (*run)(struct speech_turn *t);
    /* It gets no turn: nobody wants it, or the queue ends. Frees it. */
    void (*leave)(struct speech_turn *t);
    /* Called about once a second while it waits, and often while it runs. False: nobody wants it any more. */
    bool (*is_wanted)(struct speech_turn *t);
} speech_turn;

typedef struct speech_queue speech_queue;

/* At most n_most sounds wait, half of them of one client. NULL: there is no memory, or no thread. */
speech_queue *speech_queue_new(size_t n_most);
/* Ends the thread: the sound that runs is told by speech_queue_stops, those that wait leave. */
void speech_queue_end(speech_queue *q);
void speech_queue_free(speech_queue *q); /* after its end */

/* Adds a sound, which the queue has then. GGL_LIMIT: too many wait; GGL_CANCELLED: the queue has ended. Any thread. */
GGL_NODISCARD ggl_status speech_queue_add(speech_queue *q, speech_turn *t, ggl_error *err);
/* True if the sound that runs is to be given up. Who runs it asks this often, on the queue's thread. */
bool speech_queue_stops(speech_queue *q);
/* What runs and waits now. Any thread. */
void speech_queue_count(speech_queue *q, size_t *n_running, size_t *n_waiting);

#endif
