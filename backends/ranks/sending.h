/* Rank 0: weights on their way to a device of another rank. Who adds a weight reads it, for its digest. A thread asks the rank which
 * weights it keeps, some at once, and sends the others; while it sends some, the next ones are read and asked for.
 *
 * Until ggl_sending_finish, the channel and the weights belong to the thread. */
#ifndef RANKS_SENDING_H
#define RANKS_SENDING_H

#include "sources.h"

/* Weights that are asked for at once. */
typedef struct sent_group sent_group;

typedef struct sending {
    channel *c;
    known_files files;
    sent_group *next;  /* that is being filled */
    sent_group *asked; /* whose weights are sent next; the thread's */
    queue queue;
    room room;
    os_mutex lock;
    ggl_error failed; /* the first error, which nobody has been told; GGL_OK: none */
    bool stops;       /* there was one, so nothing is sent before ggl_sending_finish */
    bool is_made;     /* the members above are */
    bool is_on;       /* weights may be under way */
} sending;

/* All zeros: nothing is under way. */
void ggl_sending_fini(sending *x);
/* Adds an order that needs a weight: `head` is its body as far as the weight's source, and is taken. Returns an error of an earlier
 * one, too, after which nothing is sent before ggl_sending_finish. */
ggl_status ggl_sending_add(sending *x, channel *c, order_op op, ggl_bytes *head, const void *data,
                           size_t size, ggl_error *err);
/* Waits until everything is sent. The rank may not have loaded it yet. */
ggl_status ggl_sending_finish_all(sending *x, ggl_error *err);
static inline ggl_status ggl_sending_finish(sending *x, ggl_error *err) {
    return x->is_on ? ggl_sending_finish_all(x, err) : GGL_OK;
}

#endif
