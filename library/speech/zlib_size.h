/* How many bytes a text takes when zlib compresses it at its usual level: the published program for speech judges by this whether a text repeats itself
 * (openai/whisper, compression_ratio). */
#ifndef LIBRARY_ZLIB_SIZE_H
#define LIBRARY_ZLIB_SIZE_H

#include <stddef.h>

#include "ggl/status.h"

enum {
    ZLIB_SIZE_MOST = 32000
}; /* bytes, for which the size is exact: the window of the format does not slide */

/* Sets *size to the length of what zlib's compress() makes of text[0 .. n): header, blocks as deflate_slow cuts them at level 6, checksum. Of a longer
 * text, the part up to ZLIB_SIZE_MOST counts. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_zlib_size(const void *text, size_t n, size_t *size, ggl_error *err);

#endif
