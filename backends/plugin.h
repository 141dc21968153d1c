/* Backends in shared objects, for ggl_backend_open. */
#ifndef BACKENDS_PLUGIN_H
#define BACKENDS_PLUGIN_H

#include "ggl/backends.h"

/* Returns true if the name is a path: it names a folder, or ends as shared libraries do here. */
bool ggl_plugin_is_path(const char *name);
/* Opens the backend in the shared object at path; params is not NULL. */
ggl_status ggl_plugin_open(ggl_backend **out, const char *path, const ggl_backend_params *params,
                           ggl_error *err);

#endif
