/* Writes down what a model hears in one window of sound: the tokens after a prompt, by greedy choice or beams, and at higher temperatures
 * by the best of several drawn texts, until one of them is good enough (openai/whisper, decode_with_fallback). */
#ifndef LIBRARY_SPEECH_DECODER_H
#define LIBRARY_SPEECH_DECODER_H

#include "llm/internal/session.h"
#include "speech_rules.h"

enum { SPEECH_MOST_TEXTS = 64 }; /* at once */

typedef struct speech_decoding {
    speech_rules rules;
    double temperature, step; /* the first one, and what is added for each further trial, up to 1 */
    int n_best;  /* texts that are drawn at a temperature above 0, as far as there are slots */
    int n_beams; /* at temperature 0; 1: greedy */
    /* A text is not good enough if the mean of its log-probabilities, with that of its end, is below `least`, or if it repeats itself: its ratio
     * is above most_ratio, or its last 32 tokens have an entropy below least_entropy. NAN: any is good enough. */
    double least, most_ratio, least_entropy;
    double
        no_speech; /* silence, if <|nospeech|> has a higher probability and the mean is below `least` */
    uint64_t seed;
    bool (*cancelled)(void *ctx); /* asked before each step; NULL: never */
    void *ctx;
} speech_decoding;

typedef struct speech_text {
    llm_tokens ids;     /* without the token that ends it */
    double mean;        /* of the log-probabilities */
    double ratio;       /* of its bytes to those that zlib makes of them */
    double entropy;     /* of the last 32 tokens; INFINITY: there are fewer */
    double no_speech;   /* the probability of <|nospeech|>; 0: the model has none */
    double temperature; /* at which it was written */
    int64_t n_written;  /* tokens of all trials and beams */
} speech_text;

typedef struct speech_decoder speech_decoder;

/* Makes a decoder for a session whose slots read what is heard. It uses all slots. The session and the tokens stay the caller's. */
GGL_NODISCARD ggl_status llm_speech_decoder_new(speech_decoder **out, llm_session *s,
                                                ggl_error *err);
void llm_speech_decoder_free(speech_decoder *d); /* NULL is fine */

/* Writes what slot 0 hears after prompt[0 .. n), into *out, whose ids are replaced. at_start: which token of the prompt is <|startoftranscript|>.
 * All slots are empty afterwards; the first one keeps what it reads. GGL_CANCELLED; GGL_FORMAT: numbers that are not finite; as
 * llm_session_eval. */
GGL_NODISCARD ggl_status llm_speech_decode(speech_decoder *d, const speech_decoding *p,
                                           const int32_t *prompt, size_t n, size_t at_start,
                                           speech_text *out, ggl_error *err);

/* Sets *id to the likeliest language of what slot 0 hears, and *p to its probability among all. */
GGL_NODISCARD ggl_status llm_speech_detect(speech_decoder *d, const speech_tokens *t, int32_t *id,
                                           double *p, ggl_error *err);

#endif
