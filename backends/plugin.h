/* Backends in shared objects, for ggl_backend_open. params is not NULL. */
#ifndef BACKENDS_PLUGIN_H
#define BACKENDS_PLUGIN_H

#include "ggl/backends.h"

/* Whether the name is that of a file. */
bool ggl_plugin_is_path(const char *name);
ggl_status ggl_plugin_open(ggl_backend **out, const char *path, const ggl_backend_params *params,
                           ggl_error *err);

#endif
