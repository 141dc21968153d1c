/* A backend that writes down what another one does; the public part is in ggl/backends.h. */
#ifndef BACKENDS_TRACE_H
#define BACKENDS_TRACE_H

#include "../common/recorder.h"
#include "ggl/backends.h"

typedef ggl_status trace_open_fn(ggl_backend **out, const char *name,
                                 const ggl_backend_params *params, ggl_error *err);

/* The backend of that name, which `open` opens, traced to params->trace; NULL: to the file that GGL_TRACE names. params is not NULL. */
ggl_status ggl_trace_open(ggl_backend **out, trace_open_fn *open, const char *name,
                          const ggl_backend_params *params, ggl_error *err);

/* The backend that b, of ggl_trace_open, traces. */
ggl_backend *ggl_trace_inner(ggl_backend *b);
/* b traces a device of another rank: rows of that name are for what it does, with its nodes, or with these in a row of their own. Call it
 * before any node is reported. */
void ggl_trace_far(ggl_backend *b, const char *name, bool nodes_apart);
/* Writes an event to that row; ctx is b, and times are in ns of ggl_os_clock(). */
void ggl_trace_far_event(void *ctx, const trace_event *e);

#endif
