/* Kinds of sound that neither this folder nor libsndfile reads, by the program ffmpeg, where it is installed. It is started without a shell, is told which kind the bytes have, and
 * opens nothing but one file, by its name after "file:". Its samples come through a pipe, at the rate that is wanted, with their channels mixed. */
#ifndef LIBRARY_FFMPEG_H
#define LIBRARY_FFMPEG_H

#include "decoder.h"

/* Opens the bytes, which are borrowed, from their beginning. format: ffmpeg's name of the kind; kind: ours, for messages. Bytes in memory, and of a pipe, are written to a temporary file
 * first. *is_there: there is such a program; if not, GGL_UNSUPPORTED. GGL_FORMAT: it cannot read them; GGL_LIMIT: they are more than 4 GiB; GGL_IO, GGL_NOMEM. d->close may be needed after an
 * error, too. */
GGL_NODISCARD ggl_status llm_sound_ffmpeg(sound_decoder *d, sound_bytes *b, const char *format,
                                          const char *kind, int rate, bool *is_there,
                                          ggl_error *err);

#endif
