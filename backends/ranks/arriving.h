/* The other ranks: weights that have come. The thread of the channel receives one while another thread checks the digest of the one
 * before and gives it to the backend, and a third one writes what has been sent to the folder of kept weights. */
#ifndef RANKS_ARRIVING_H
#define RANKS_ARRIVING_H

#include "sources.h"

/* A weight, and what is to be done with it. */
typedef struct weight {
    queued q;
    taken from;
    ggl_buffer *to;
    size_t offset, to_size; /* of `to` */
    bool repacks;           /* else it is uploaded */
    ggl_tensor t;           /* to repack; its data is set later */
    char name[256];         /* of t */
} weight;

/* Waits until a weight of that size may come: a few are under way at a time. */
void ggl_arriving_begin(station *s, size_t size);
/* Loads the weight, which ggl_arriving_begin has made room for; takes what it was taken from. May return before it is done. */
void ggl_arriving_add(station *s, const weight *w);
/* Notes an error of what has been loaded. waits: after all of it has been. */
void ggl_arriving_settle(station *s, bool waits);
/* Ends the threads, after all that should be kept is written. */
void ggl_arriving_fini(station *s);

#endif
