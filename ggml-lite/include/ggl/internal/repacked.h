/* Repacked weights that several schedulers read: the copies which one has made (ggl_sched_params.repacked) are those of the others, too.
 * Only backends that compute in host memory share them.
 *
 * Threads: schedulers with the same table may be made, run and freed at the same time. */
#ifndef GGL_REPACKED_H
#define GGL_REPACKED_H

#include "ggl/sched.h"

/* A table of copies of the weights that lie in these n_host ranges, which are copied. The memory of the ranges stays, with the same bytes, until
 * the table is freed: a copy is found by the address of its weight. */
GGL_NODISCARD ggl_status ggl_repacked_new(ggl_repacked **out, const ggl_host_range *host,
                                          int n_host, ggl_error *err);
/* No scheduler uses it any more. NULL is fine. */
void ggl_repacked_free(ggl_repacked *r);

#endif
