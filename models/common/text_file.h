/* Small files read whole, such as descriptors and config.json. */
#ifndef LLM_TEXT_FILE_H
#define LLM_TEXT_FILE_H

#include "ggl/status.h"

/* What Git LFS leaves where a large file was not fetched begins like this; and what to say then. */
#define LLM_LFS_POINTER "version https://git-lfs.github.com/spec/"
#define LLM_LFS_ADVICE                                                                             \
    "this is Git LFS's pointer to the file, not the file: 'git lfs pull' in its folder fetches it"

/* *text is the caller's (ggl_free), with a NUL after its n bytes. GGL_IO: cannot be read, is a
 * directory, a device or a pipe that nobody writes to; GGL_LIMIT: longer than `most` bytes. */
GGL_API GGL_NODISCARD ggl_status llm_read_text_file(const char *path, size_t most, char **text,
                                                    size_t *n, ggl_error *err);

#endif
