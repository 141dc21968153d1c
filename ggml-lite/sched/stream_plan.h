/* Which weights stay in memory if not all have room, and which are read again for each run. A run reads the weights in the same order as the
 * one before: what was read longest ago is what is needed next, so that memory managed by age keeps nothing. Instead a fixed part
 * stays, and the rest passes through a small window. */
#ifndef GGL_SCHED_STREAM_PLAN_H
#define GGL_SCHED_STREAM_PLAN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stream_needs {
    size_t memory;  /* bytes that weights may take */
    size_t each;    /* bytes of weights that each run reads, all of them */
    size_t largest; /* bytes of the largest one */
    size_t chosen;  /* bytes of stacks of matrices, of which a run reads a few that it chooses */
} stream_needs;

/* Bytes of memory. All zeros: all weights have room. */
typedef struct stream_plan {
    size_t kept;   /* of `each`, what stays */
    size_t window; /* the rest passes through this much */
    size_t chosen; /* matrices of stacks: those that are used most */
} stream_plan;

stream_plan ggl_stream_plan(const stream_needs *n);
/* Marks which of n parts, in the order in which a run reads them, stay, so that p->kept bytes do at most. They are spread
 * evenly, so that the disk can be read all the time. */
void ggl_stream_keep(const stream_plan *p, const size_t *size, size_t n, bool *is_kept);

#endif
