/* Pictures and sound: models that see and hear in a text, and models that write down speech. A part of llm/llm.h,
 * which says what all calls have in common: sizes of structs, NULL, threads.
 *
 * Tier: stable (docs/library.md says what that promises). */
#ifndef LLM_SENSES_H
#define LLM_SENSES_H

#include "llm/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- in a text -------------------------------------------------------------------------------- */

/* A picture: the path of its file ("-": standard input), or the n bytes of one, with a name for messages. PPM and BMP are always read; PNG, JPEG and
 * WebP if the library was built for them. This struct stays as it is. */
typedef struct llm_image {
    const char *path; /* NULL: data */
    const void *data; /* NULL: path */
    size_t n;
    const char *name; /* of data; NULL: "the picture" */
} llm_image;

enum { LLM_IMAGE_MARK = 77 }; /* bytes of the mark of a picture or a sound, with its NUL */

/* A sound: the path of its file ("-": standard input), the n bytes of one, or samples without a header. WAV is always read, with mu-law, A-law and ADPCM;
 * FLAC, MP3 and Ogg by libsndfile, if the build has it, and these and others, such as MP4 and WebM, by the program ffmpeg, if it is installed. Zero it before: it may get more members. */
typedef struct llm_audio {
    const char *path; /* NULL: data */
    const void *data; /* NULL: path */
    size_t n;
    const char *name; /* of data; NULL: "the sound" */
    /* Samples without a header: "s16le" or "f32le"; NULL: the file says what it is. raw_rate 0: the model's rate; raw_channels 0: 1 */
    const char *raw;
    int32_t raw_rate, raw_channels;
} llm_audio;

/* Shows a picture to the model: *mark becomes a text that stands for it wherever special tokens are read, in a prompt (llm_generate) or a message
 * (llm_reply), so
 *
 *     char mark[LLM_IMAGE_MARK], text[256];
 *     st = llm_see(c, &(llm_image){.path = "cat.jpg"}, mark, &err);
 *     snprintf(text, sizeof text, "%s What is in this picture?", mark);
 *     st = llm_reply(c, &(llm_message){"user", text}, 1, NULL, each, user, &err);
 *
 * asks about it. A text with more pictures than the model's file allows (general.max_images) is GGL_LIMIT. The eye looks once; the same picture has the same mark, and costs nothing again. What it saw is kept until llm_unsee, and then
 * until all that was let go takes more than 256 MiB, the oldest first: memory is not given back at once. GGL_UNSUPPORTED: the model has no eye, or
 * this kind of picture is not read; GGL_LIMIT: it is too large, has more rows than the context has room, or a shape that the eye does not see; GGL_FORMAT: it is damaged; GGL_IO, GGL_NOMEM, GGL_DEVICE, GGL_CANCELLED. */
GGL_API GGL_NODISCARD ggl_status llm_see(llm_context *c, const llm_image *image,
                                         char mark[LLM_IMAGE_MARK], ggl_error *err);
GGL_API void llm_unsee(llm_context *c, const char *mark);
/* Plays a sound to the model, and writes a mark as llm_see does; llm_unsee lets go of it. Sound that is longer than the ear hears at once, mostly half a
 * minute, is heard in windows. GGL_UNSUPPORTED: the model has no ear, or this kind of sound is not read; GGL_LIMIT: it has more rows than the context
 * has room; GGL_FORMAT: it is damaged, or empty; GGL_USAGE, GGL_IO, GGL_NOMEM, GGL_DEVICE, GGL_CANCELLED. */
GGL_API GGL_NODISCARD ggl_status llm_listen(llm_context *c, const llm_audio *audio,
                                            char mark[LLM_IMAGE_MARK], ggl_error *err);
/* --- speech ------------------------------------------------------------------------------------ */

/* A word of a piece of speech, with the signs beside it. This struct stays as it is. */
typedef struct llm_word {
    double start, end; /* seconds after the sound's beginning */
    const char *text;  /* [n] and a NUL: " And"; of all words together, that of the piece */
    size_t n;
    double probability;
} llm_word;

/* A piece of speech that was written down. The library makes it; it may get more members at its end. */
typedef struct llm_speech {
    double start, end; /* seconds after the sound's beginning, and not after its end */
    const char *text;  /* [n] and a NUL: UTF-8, with U+FFFD for bytes that are no character */
    size_t n;
    const int32_t *id; /* [n_id]: its tokens, with those that stand for times */
    size_t n_id;
    const char *language; /* "en"; "": the model is not told which */
    double logprob;       /* the mean of its window's tokens */
    double
        no_speech; /* the probability that the window is silence, says the model; 0: it does not say */
    double temperature;   /* at which it was written */
    const llm_word *word; /* [n_words], with llm_transcribe_params.words */
    size_t n_words;
    double
        compression_ratio; /* bytes of its window's text, divided by those that zlib makes of it; large: it repeats itself */
} llm_speech;

/* How sound is written down. Begin with llm_transcribe_default(), whose numbers are those of openai/whisper. */
typedef struct llm_transcribe_params {
    size_t size; /* sizeof(llm_transcribe_params) */
    const char *
        language; /* its code ("de") or name ("german"); NULL or "auto": the likeliest of the first window */
    bool translate;  /* into English */
    bool no_times;   /* without times in a window: a window is one piece */
    bool no_context; /* the model does not see what it wrote of the window before */
    const char
        *prompt; /* what may have been said before, or how names are spelled; NULL: nothing */
    /* A window is written again, at a temperature that is higher by temperature_step, up to 1, if the mean of the log-probabilities is below
     * least_logprob, or if it repeats itself: its compression_ratio is above most_ratio, or the entropy of its last 32 tokens below least_entropy. */
    float temperature;      /* the first one; by default 0 */
    float temperature_step; /* 0: there is one trial; by default 0.2 */
    float least_logprob;    /* by default -1 */
    float least_entropy;    /* 0: none; by default 0 */
    float
        no_speech; /* silence from this probability on, if the log-probabilities are below least_logprob, too; by default 0.6 */
    int32_t n_beams,
        n_best; /* texts at once, at temperature 0 and above it; at most 64, and llm_open_params.n_parallel, or 5 if that is 0; 0: 5, or as many as the context has sequences for */
    uint64_t seed;
    double offset, duration; /* in seconds: the part that is written down; duration 0: to the end */
    const void *data; /* [n_data]: the bytes of a file; path is then a name for messages, or NULL */
    size_t n_data;
    /* Samples without a header: "s16le" or "f32le"; NULL: the file says what it is. raw_rate 0: the model's rate; raw_channels 0: 1 */
    const char *raw;
    int32_t raw_rate, raw_channels;
    /* Called for each piece, in order, with members that are valid during the call. False: GGL_CANCELLED. */
    bool (*each)(void *user, const llm_speech *piece);
    /* Called with the seconds that are done, and all; less than 0: not known. False: GGL_CANCELLED. May be NULL. */
    bool (*progress)(void *user, double done, double all);
    void (*note)(
        void *user,
        const char
            *text); /* what was done to the sound, and the language that was found; may be NULL */
    void *user;
    bool words; /* find when each word was said, too (llm_open_params.words) */
    /* Gets a sentence if the sound is damaged, but what there is of it was written down: it ends before its header says. NULL: note gets it. */
    void (*warn)(void *user, const char *text);
    /* Called once, before the first piece, with the language ("en"): the given one, the one that was found, or the one that the model knows. Else it is not called for a
     * sound that is too short to have one. May be NULL. */
    void (*spoken)(void *user, const char *language);
    float most_ratio; /* 0: none; by default 2.4 */
    /* Finds speech first, and writes down that alone; times are those of the whole sound. The path or name of a model such as Silero VAD; NULL: all is heard. A model is
     * opened once for a context. The other members are those of whisper.cpp, with its defaults, which they keep if this is NULL. */
    const char *vad_model;
    float vad_threshold;                 /* the probability of speech; by default 0.5 */
    int32_t vad_min_speech_duration_ms;  /* shorter speech is left out; by default 250 */
    int32_t vad_min_silence_duration_ms; /* shorter silence belongs to speech; by default 100 */
    int32_t vad_speech_pad_ms;           /* what is heard beside it; by default 30 */
    float
        vad_max_speech_duration_s; /* longer speech is cut, in its longest pause of 98 ms or more; 0: it is not */
    float
        vad_samples_overlap; /* seconds that are heard after each part, too, up to the next one; by default 0.1 */
    /* Writes while it hears: each token as soon as the sound that it is about has come, of a pipe, too. The text is the same. For models whose ear hears no more than what came before, and
     * writes a token for each row, such as Voxtral Realtime; others are GGL_UNSUPPORTED. */
    bool live;
    /* Gets the text of a piece while it is written, as soon as it is known, [n] and a NUL: whole characters, with the space before it as in llm_speech.text. All that it gets before `each` gets the piece is
     * the text of that. False: GGL_CANCELLED. May be NULL. */
    bool (*said)(void *user, const char *text, size_t n);
} llm_transcribe_params;

/* For llm_transcribe_default, and programs in other languages. */
GGL_API void llm_transcribe_fill_default(llm_transcribe_params *p, size_t size);
static inline llm_transcribe_params llm_transcribe_default(void) {
    llm_transcribe_params p;
    llm_transcribe_fill_default(&p, sizeof p);
    return p;
}

/* Writes down the speech of a file of sound (path, "-": standard input), with a model that hears: one such as Whisper, or a text model with an ear (llm_open_params.mmproj), which is asked as the ear's
 * descriptor says. Of llm_transcribe_params, such a model does not read no_times, no_context, n_beams, n_best and the thresholds; a piece is a part of the sound that it heard at once. The kinds are those of llm_audio. Sound of any length is read in windows, as the model was trained to, in little memory. The sequence is empty
 * afterwards. GGL_UNSUPPORTED: the model does not hear, or the kind of sound; GGL_USAGE: params are wrong, there is neither a path nor data, or the model does not know the
 * language; GGL_LIMIT: the context is too small; GGL_FORMAT: the sound is damaged; GGL_CANCELLED, GGL_IO, GGL_NOMEM, GGL_DEVICE. */
GGL_API GGL_NODISCARD ggl_status llm_transcribe(llm_context *c, const char *path,
                                                const llm_transcribe_params *params,
                                                ggl_error *err);
/* Writes down a sound that the program has piece by piece, as from a microphone:
 *
 *     st = llm_live_begin(c, &params, &rate, &err);
 *     while (st == GGL_OK && (n = record(sample, rate)) > 0)
 *         st = llm_live_hear(c, sample, n, &err);      // params.said and params.each get the text meanwhile
 *     if (st == GGL_OK)
 *         st = llm_live_end(c, &err);                  // and the rest of it
 *
 * Pieces may have any lengths, and the text is that of llm_transcribe for the whole sound. Memory does not grow with the sound: after at most as long as the model's speech section says (ten minutes of Voxtral
 * Realtime), or as the context has tokens for, a part ends where it is quiet, and text and ear begin anew. Near that place the text comes up to five seconds later.
 *
 * params: as of llm_transcribe with `live`; its strings are borrowed until the sound ends, and what only files have (data, raw, offset, duration, vad_model) is GGL_USAGE. *rate (NULL: it is known) becomes the samples for
 * each second of one channel, -1 to 1 at full volume. llm_cancel ends a call. After a failure, and after llm_live_end, the sequence is empty and the sound has ended, as it has when another call generates with this context or changes its sequence.
 * GGL_UNSUPPORTED: the model does not hear, or needs sounds as a whole, which the message says; GGL_USAGE: llm_live_begin was not called, a sample is not finite, or a callback calls this; GGL_CANCELLED: also if a callback says
 * so; statuses of llm_transcribe. */
GGL_API GGL_NODISCARD ggl_status llm_live_begin(llm_context *c, const llm_transcribe_params *params,
                                                int32_t *rate, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_live_hear(llm_context *c, const float *sample, size_t n,
                                               ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_live_end(llm_context *c, ggl_error *err);
/* Returns the English name of the language with this code: "german" for "de"; NULL: it is not known. */
GGL_API const char *llm_language_name(const char *code);

#ifdef __cplusplus
}
#endif
#endif
