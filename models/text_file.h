/* Small files read whole, such as descriptors and prompts. */
#ifndef LLM_TEXT_FILE_H
#define LLM_TEXT_FILE_H

#include "ggl/status.h"

/* *text is the caller's (ggl_free), with a NUL behind its n bytes. GGL_IO: cannot be read, a
 * directory; GGL_LIMIT: longer than `most` bytes. */
GGL_API GGL_NODISCARD ggl_status llm_read_text_file(const char *path, size_t most, char **text,
                                                    size_t *n, ggl_error *err);

#endif
