/* Where a sound has speech, by the probability of each piece of it (silero-vad, get_speech_timestamps_from_probs). */
#ifndef LIBRARY_VOICE_SPANS_H
#define LIBRARY_VOICE_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"

/* All in samples. */
typedef struct voice_rules {
    double
        threshold; /* speech begins with a piece of at least this probability, and may end with one that is 0.15 below it */
    double least_speech;  /* shorter speech is dropped */
    double most_speech;   /* longer speech is cut, where it is silent if it is; INFINITY: none */
    double least_silence; /* shorter silence ends no speech */
    double pad;           /* is added on both sides */
    int64_t rate, chunk;  /* samples in a second, and of a piece */
} voice_rules;

typedef struct voice_span {
    int64_t from, to;
} voice_span;

typedef struct voice_spans {
    voice_span *span; /* [n]: in order, none overlaps the next */
    size_t n, cap;
} voice_spans;

/* Finds the spans of a sound of n_samples samples from the probabilities of its n pieces. GGL_NOMEM. Free with llm_voice_spans_fini in any case. */
GGL_NODISCARD ggl_status llm_voice_spans_find(voice_spans *out, const float *probability, size_t n,
                                              int64_t n_samples, const voice_rules *r,
                                              ggl_error *err);
void llm_voice_spans_fini(voice_spans *s);

#endif
