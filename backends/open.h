/* How ggl_backend_open gets at what is not in the list: list.c alone calls these. params is not
 * NULL. */
#ifndef BACKENDS_OPEN_H
#define BACKENDS_OPEN_H

#include "ggl/backends.h"

/* The backend of that name, traced to params->trace; NULL: to the file that GGL_TRACE names. */
ggl_status trace_open(ggl_backend **out, const char *name, const ggl_backend_params *params,
                      ggl_error *err);

/* Whether the name is that of a file. */
bool plugin_is_path(const char *name);
ggl_status plugin_open(ggl_backend **out, const char *path, const ggl_backend_params *params,
                       ggl_error *err);

#endif
