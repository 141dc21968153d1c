/* Whether a text repeats itself, by how much shorter it becomes (openai/whisper, utils.py: compression_ratio). */
#ifndef LIBRARY_SPEECH_RATIO_H
#define LIBRARY_SPEECH_RATIO_H

#include "speech_tokens.h"

/* Sets *ratio to the bytes of the text of id[0 .. n), without times and without spaces around it, divided by those that zlib makes of it. Bytes that are
 * no characters count as U+FFFD. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_speech_ratio(const speech_tokens *t, const int32_t *id, size_t n,
                                          double *ratio, ggl_error *err);

#endif
