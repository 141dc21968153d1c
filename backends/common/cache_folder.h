/* The user's folder for files that can be made again. */
#ifndef BACKENDS_CACHE_FOLDER_H
#define BACKENDS_CACHE_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Writes the path of the folder, $XDG_CACHE_HOME/ggml-lite or ~/.cache/ggml-lite. False: there is none, or no room for it. */
static inline bool cache_folder(char *path, size_t size) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (xdg && xdg[0] == '/')
        n = snprintf(path, size, "%s/ggml-lite", xdg);
    else if (home && home[0] == '/')
        n = snprintf(path, size, "%s/.cache/ggml-lite", home);
    return n >= 0 && (size_t)n < size;
}

/* Makes the folders above the last part of the path that are not there. Whoever writes there sees whether that has worked. */
static inline void cache_make_parents(char *path) {
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(path, 0777);
            *p = '/';
        }
}

#endif
