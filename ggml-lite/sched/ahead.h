/* Reads mapped files of weights ahead of the first run: a thread asks the system for them, piece by piece, in the order
 * in which runs need them. Else a file that is not in memory would be read as its pages are touched, in small
 * pieces. */
#ifndef GGL_SCHED_AHEAD_H
#define GGL_SCHED_AHEAD_H

#include <stdatomic.h>

#include "ggl/internal/os_thread.h"
#include "repack_file.h"

typedef struct ahead {
    struct stretch {
        const char *from;
        size_t size;
    } * at; /* what is read, in this order */
    size_t n, cap;
    size_t size; /* bytes of all */
    bool has_thread;
    os_thread thread;
    atomic_bool stops;
} ahead;

/* Notes that the device's node reads t, if that is a mapped weight, a view of one or a stack, unless it reads only some rows of it. False:
 * out of memory. */
bool ggl_sched_note_read(schedule *s, const device *d, const ggl_tensor *node, ggl_tensor *t);
/* Starts reading what is noted: the file of repacked weights, if it is used, and the weights that a device
 * reads from a mapped file. Does nothing if that exceeds the memory that is left, because what is read would be
 * dropped before it is used, or if no thread can be started: it is only for speed. False: out of memory. */
bool ggl_ahead_start(ahead *a, const schedule *s, const repack_file *file);
void ggl_ahead_stop(ahead *a);
/* Returns which share of what is noted is in memory, by a sample: 0 to 1. Any thread may ask between start and stop. */
double ggl_ahead_present(const ahead *a);

#endif
