/* What watched nodes read (ggl_sched_params.watch). */
#ifndef GGL_SCHED_WATCHED_H
#define GGL_SCHED_WATCHED_H

#include "ggl/internal/os_thread.h"
#include "memory.h"

typedef struct watching {
    char *shown;          /* [shown_size]: operands from devices with other memory */
    const void **operand; /* [n_operands] */
    os_mutex lock;        /* held while params.watch->see is called and `shown` is used */
} watching;

bool ggl_watching_alloc(watching *w, const schedule *s);

/* Sets s->watched, before nodes are divided into segments. */
ggl_status ggl_sched_find_watched(schedule *s, ggl_error *err);
/* Keeps the operands of the watched nodes of segment i, which all have places, until its end. own[] as
 * for ggl_sched_provide_value. */
ggl_status ggl_sched_keep_watched(schedule *s, size_t i, const size_t *own, ggl_error *err);
/* Shows what the watched nodes of the segment have read of a batch of n elements; the segment is done. */
ggl_status ggl_watching_show(watching *w, const schedule *s, const host_memory *h,
                             const segment *seg, int lane, int64_t n, ggl_error *err);

#endif
