/* Cuts what a speech model has written of a window into segments, at its times, as the published program does (openai/whisper,
 * transcribe.py). */
#ifndef LIBRARY_SPEECH_SEGMENTS_H
#define LIBRARY_SPEECH_SEGMENTS_H

#include "speech_tokens.h"

typedef struct speech_segment {
    int64_t start_ms, end_ms; /* after the window's beginning */
    const int32_t *id;        /* [n], of the text, with its times */
    size_t n;
} speech_segment;

/* Calls each(ctx, segment) for the segments of id[0 .. n), a text of a window of window_ms milliseconds of sound. Returns after how many
 * milliseconds the next window begins: where the last whole segment ends, if the text breaks off after it, or else after this one. Stops if
 * `each` returns false. */
int64_t llm_speech_cut(const speech_tokens *t, const int32_t *id, size_t n, int64_t window_ms,
                       bool (*each)(void *ctx, const speech_segment *s), void *ctx);

#endif
