#include "public_file.h"

#include "hub/hub.h"

ggl_status tool_read_public(unsigned char **bytes, size_t *n, const char *url, size_t n_most,
                            bool (*stopped)(void *ctx), void *ctx, ggl_error *err) {
    const hub_watch watch = {.stopped = stopped, .user = ctx};
    return llm_hub_read_public(bytes, n, url, n_most, &watch, err);
}
