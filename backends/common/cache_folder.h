/* The user's folder for files that can be made again. */
#ifndef BACKENDS_CACHE_FOLDER_H
#define BACKENDS_CACHE_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"

/* Returns what the environment variable names; NULL: it is not set, or empty. */
static inline const char *cache_folder_named(const char *variable) {
    const char *s = getenv(variable);
    return s && *s ? s : NULL;
}

static inline bool cache_folder_is_off(const char *variable) {
    const char *s = cache_folder_named(variable);
    return s && strcmp(s, "off") == 0;
}

/* Writes the path of the folder that the environment variable names; if it is not set, or empty, of `below` ("", "/weights") in
 * $XDG_CACHE_HOME/ggml-lite or ~/.cache/ggml-lite. False: the variable is "off", or there is no folder, or no room for its path. */
static inline bool cache_folder(const char *variable, const char *below, char *path, size_t size) {
    const char *named = cache_folder_named(variable), *xdg = getenv("XDG_CACHE_HOME"),
               *home = ggl_os_home();
    int n = -1;
    if (cache_folder_is_off(variable))
        return false;
    if (named)
        n = snprintf(path, size, "%s", named);
    else if (xdg && ggl_os_is_absolute(xdg))
        n = snprintf(path, size, "%s/ggml-lite%s", xdg, below);
    else if (home && ggl_os_is_absolute(home))
        n = snprintf(path, size, "%s/.cache/ggml-lite%s", home, below);
    return n >= 0 && (size_t)n < size;
}

#endif
