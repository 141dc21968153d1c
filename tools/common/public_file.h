/* Files at addresses that strangers give, such as the pictures of a server's requests. */
#ifndef TOOLS_PUBLIC_FILE_H
#define TOOLS_PUBLIC_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/status.h"

/* Reads a file from a public address, as llm_hub_read_public does (hub/hub.h). stopped: asked often; true gives up, with GGL_CANCELLED. */
GGL_NODISCARD ggl_status tool_read_public(unsigned char **bytes, size_t *n, const char *url,
                                          size_t n_most, bool (*stopped)(void *ctx), void *ctx,
                                          ggl_error *err);

#endif
