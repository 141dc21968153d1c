/* The name of a model after the folder that it is in.
 *
 * Only in this header, because the tools' code for paths uses it, too, which links nothing of llm. */
#ifndef LLM_FOLDER_NAME_H
#define LLM_FOLDER_NAME_H

#include <string.h>

#include "ggl/internal/os_fs.h"
#include "ggl/str.h"

/* Cuts the last part off a path of *n bytes, without separators at its end, and returns it. */
static inline ggl_str llm_path_take_last(const char *path, size_t *n) {
    while (*n > 0 && ggl_os_separates(path[*n - 1]))
        --*n;
    const size_t end = *n;
    while (*n > 0 && !ggl_os_separates(path[*n - 1]))
        --*n;
    return (ggl_str){path + *n, end - *n};
}

/* Returns the last part of a path, or NAME of ../models--ORG--NAME/snapshots/HASH, as the Hugging Face
 * cache has them. It is part of the path, and empty for "/". */
static inline ggl_str llm_folder_name(const char *path) {
    size_t n = strlen(path), at = 0;
    const ggl_str last = llm_path_take_last(path, &n), snapshots = llm_path_take_last(path, &n);
    const ggl_str repository = llm_path_take_last(path, &n);
    if (last.n < 7 || !ggl_str_is(snapshots, "snapshots") || repository.n < 8 ||
        memcmp(repository.s, "models--", 8) != 0)
        return last;
    for (size_t i = 0; i + 2 < repository.n; i++)
        if (repository.s[i] == '-' && repository.s[i + 1] == '-')
            at = i + 2;
    return (ggl_str){repository.s + at, repository.n - at};
}

#endif
