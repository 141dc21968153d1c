/* A model that finds speech in sound: its descriptor makes, of a row of samples and the state that the row before has left, a row with the probability
 * of speech and the next state. Keys of its file say how many samples a row has: audio.chunk_length, and before them the last audio.past_length of the row before. */
#ifndef LIBRARY_VOICE_H
#define LIBRARY_VOICE_H

#include "context.h"
#include "llm/llm.h"
#include "sound/sound.h"
#include "speech/voice_spans.h"

typedef struct llm_voice llm_voice;

/* Opens the model: a path or a name, as of llm_open. GGL_UNSUPPORTED: it finds no speech; statuses of llm_open. */
GGL_NODISCARD ggl_status llm_voice_open(llm_voice **out, const char *path, ggl_error *err);
void llm_voice_close(llm_voice *v);     /* NULL is fine */
int llm_voice_rate(const llm_voice *v); /* of the samples that it reads */
const char *llm_voice_path(const llm_voice *v);

/* The probabilities of a sound, piece by piece. */
typedef struct voice_probabilities {
    float *p; /* [n] */
    size_t n, cap;
    int64_t n_samples;
} voice_probabilities;

/* Adds the probabilities of n samples of a sound that begins with the first call for *to, which is all zeros then; the last piece is filled up with zeros if the sound
 * ends with them (is_last). c: who may cancel. GGL_CANCELLED, GGL_FORMAT (numbers that are not finite), GGL_NOMEM, as llm_stages_run. Free to->p. */
GGL_NODISCARD ggl_status llm_voice_hear(llm_voice *v, voice_probabilities *to, const float *sample,
                                        int64_t n, bool is_last, llm_context *c, ggl_error *err);

/* How spans are found, of params. GGL_USAGE: a number is not what is allowed. */
GGL_NODISCARD ggl_status llm_voice_rules(voice_rules *out, const llm_voice *v,
                                         const llm_transcribe_params *p, ggl_error *err);
/* Refuses numbers of params that are not the defaults, for a caller that has no such model. GGL_USAGE. */
GGL_NODISCARD ggl_status llm_voice_check_unused(const llm_transcribe_params *p, ggl_error *err);

#endif
