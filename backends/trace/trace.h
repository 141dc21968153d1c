/* A backend that writes down what another one does; the public part is in ggl/backends.h. */
#ifndef BACKENDS_TRACE_H
#define BACKENDS_TRACE_H

#include "ggl/backends.h"

typedef ggl_status trace_open_fn(ggl_backend **out, const char *name,
                                 const ggl_backend_params *params, ggl_error *err);

/* The backend of that name, which `open` opens, traced to params->trace; NULL: to the file that GGL_TRACE names. params is not NULL. */
ggl_status ggl_trace_open(ggl_backend **out, trace_open_fn *open, const char *name,
                          const ggl_backend_params *params, ggl_error *err);

#endif
