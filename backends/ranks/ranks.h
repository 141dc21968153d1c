/* Devices of other ranks, by names like "rank2" and "rank2:vulkan0". */
#ifndef RANKS_H
#define RANKS_H

#include "ggl/backends.h"

bool ggl_rank_is_name(const char *name);
/* Opens a device of another rank of the current job: its processor, or what follows the colon. GGL_NOT_FOUND: there is no job, or no
 * such rank; else the error of the rank. */
ggl_status ggl_rank_open(ggl_backend **out, const char *name, const ggl_backend_params *params,
                         ggl_error *err);

#endif
