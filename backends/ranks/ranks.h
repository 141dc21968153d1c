/* Devices of other ranks, by names like "rank2" and "rank2:vulkan0". */
#ifndef RANKS_H
#define RANKS_H

#include "../common/recorder.h"
#include "ggl/backends.h"
#include "ggl/internal/backends.h" /* ggl_rank_is_name */

/* Opens a device of another rank of the current job: its processor, or what follows the colon. GGL_NOT_FOUND: there is no job, or no
 * such rank; else the error of the rank. */
ggl_status ggl_rank_open(ggl_backend **out, const char *name, const ggl_backend_params *params,
                         ggl_error *err);
/* Writes "rank1 on node7" to text. Returns true if the device itself is asynchronous, so that its nodes run beside what else happens
 * there. */
bool ggl_rank_place(const ggl_backend *b, char *text, size_t size);
/* Where events of the device go that are no nodes: waits, messages, calls. b was opened with a profile, which gets the nodes. */
void ggl_rank_set_events(ggl_backend *b, trace_event_fn *event, void *ctx);

#endif
