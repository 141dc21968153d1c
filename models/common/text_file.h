/* Reads small files as a whole, such as descriptors and config.json, and the start of any file. */
#ifndef LLM_TEXT_FILE_H
#define LLM_TEXT_FILE_H

#include <stdbool.h>

#include "ggl/status.h"

/* The beginning of what Git LFS leaves in place of a large file that was not fetched, and the
 * advice for that. */
#define LLM_LFS_POINTER "version https://git-lfs.github.com/spec/"
#define LLM_LFS_ADVICE                                                                             \
    "this is a Git LFS pointer, not the file itself: 'git lfs pull' in its folder downloads it"

/* Returns true if the n bytes of a file begin like such a pointer. */
bool llm_is_lfs_pointer(const void *data, size_t n);

/* Returns how many bytes of a pipe or a device are read, as these may have no end: 2 GiB, or the memory that is free. */
size_t llm_most_of_stream(void);

/* Reads a file into *text, with a NUL after its n bytes; the caller frees it with ggl_free.
 * GGL_IO: it cannot be read, or is a directory, a device, or a pipe without a writer; GGL_LIMIT:
 * it is longer than `most` bytes. */
GGL_NODISCARD ggl_status llm_read_text_file(const char *path, size_t most, char **text, size_t *n,
                                            ggl_error *err);

/* Reads the first bytes of a regular file, at most `size`, into buf, and returns how many there are.
 * 0: the file cannot be read, or is no regular file. A pipe is left alone, because what is read from
 * it is lost for the next reader. */
size_t llm_read_head(const char *path, void *buf, size_t size);

#endif
