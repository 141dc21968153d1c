/* Sound that a model hears: opened, and made into the rows that its first stage reads, window by window. */
#ifndef LIBRARY_HEARING_H
#define LIBRARY_HEARING_H

#include "context.h"
#include "sound/mel_stream.h"
#include "sound/sound.h"
#include "sound_rows.h"

typedef struct hearing {
    llm_context *c;
    const char *name; /* of the sound, for messages */
    const llm_arch_sound *how;
    llm_sound *sound;
    llm_mel *mel;
    llm_mel_stream *stream;
    double largest;   /* value of the sound */
    bool is_measured; /* by a first pass */
    int64_t n_window; /* rows of a window */
    int64_t n_mel;    /* numbers of a row */
    float *rows;      /* [n_window][n_mel] */
    /* With a model that finds speech: the parts that are heard, one after the other; else all is. */
    struct heard_part *part; /* [n_parts] */
    size_t n_parts;
    bool has_parts;
    size_t i_part; /* the part that is read, and how many samples of it were */
    int64_t n_part_read;
    int64_t n_read; /* samples of the sound that were read */
    float *kept;    /* [n_kept]: of a sound that cannot be read twice */
    size_t n_kept, cap_kept;
    double spoken, seconds; /* of all parts, and of the sound */
    double inexact;         /* seconds at a part's ends that need not have speech */
} hearing;

/* Samples from .. from + n - 1 of the sound, and `gap` of silence, are those from `at` on of what is heard. */
typedef struct heard_part {
    int64_t from, n, gap, at;
} heard_part;

/* Opens the sound that path and params name, and reads it once if that is possible, to measure it. *h is zero before; free it with
 * llm_hearing_close in any case. Statuses of llm_transcribe. */
GGL_NODISCARD ggl_status llm_hearing_open(hearing *h, llm_context *c, const char *path,
                                          const llm_transcribe_params *p, ggl_error *err);
void llm_hearing_close(hearing *h);

/* The input of a model that hears: how it is made of sound, the numbers of a row, and the rows of a window. */
typedef struct hearing_input {
    const llm_arch_sound *how;
    int64_t n_mel, n_window;
} hearing_input;
/* llm_hearing_open of a model whose stages do not run, with an input that outlives *h. */
GGL_NODISCARD ggl_status llm_hearing_open_as(hearing *h, llm_context *c, const hearing_input *in,
                                             const char *path, const llm_transcribe_params *p,
                                             ggl_error *err);

/* llm_hearing_open with samples at this rate in place of rows, for llm_hearing_samples; the sound is read once. */
GGL_NODISCARD ggl_status llm_hearing_open_samples(hearing *h, llm_context *c,
                                                  const llm_arch_sound *how, const char *path,
                                                  const llm_transcribe_params *p, ggl_error *err);
/* Reads the next samples that are heard. *got is 0 at the end only. */
GGL_NODISCARD ggl_status llm_hearing_samples(hearing *h, float *to, int64_t n, int64_t *got,
                                             ggl_error *err);

/* Reads until the window of rows from `at` on can be computed, computes it, and sets *n to how many of its rows are of the sound, before row
 * `until`; the others show silence. 0: the sound has ended before. `at` never goes back. */
GGL_NODISCARD ggl_status llm_hearing_window(hearing *h, int64_t at, int64_t until, int64_t *n,
                                            ggl_error *err);
/* Sets the numbers of the window's rows after the first n to 0, as the program published with the first of these models does before it writes a
 * window down (openai/whisper, transcribe.py). 0 is no silence, whose numbers are below it: after silent rows, models write words that nobody
 * has said. */
void llm_hearing_cut(hearing *h, int64_t n);

/* Returns the time in the sound of a time in what is heard. */
double llm_hearing_place(const hearing *h, double seconds);
/* The same of the times of a piece, which may have several parts and the silence between them. It has none before or after them: a time that a
 * model puts a little into the next part, or before the end of the last one, is that of the nearest part which the piece fills. */
void llm_hearing_place_piece(const hearing *h, double *start, double *end);
/* The same of a word, which is in one part: that of its middle. */
void llm_hearing_place_word(const hearing *h, double *start, double *end);
/* Tells the caller a note, unless it is empty. */
void llm_hearing_tell_note(const llm_transcribe_params *p, const char *text);
/* Tells the caller in how many parts there is speech, if such are found. */
void llm_hearing_tell_parts(const hearing *h, const llm_transcribe_params *p);
/* Tells the caller that so many seconds of what is heard are done. GGL_CANCELLED: the caller says so. */
GGL_NODISCARD ggl_status llm_hearing_tell_progress(const hearing *h, const llm_transcribe_params *p,
                                                   double seconds, ggl_error *err);
/* The same of a sound of which nothing is heard. GGL_USAGE: it ends before the offset. */
GGL_NODISCARD ggl_status llm_hearing_tell_nothing(const hearing *h, const llm_transcribe_params *p,
                                                  double seconds, ggl_error *err);
/* Tells the caller at the end what was done to the sound, and what is wrong with it. */
void llm_hearing_tell_sound(const hearing *h, const llm_transcribe_params *p);
/* Rows in so many seconds, and back. */
int64_t llm_hearing_rows_in(const hearing *h, double seconds);
double llm_hearing_seconds(const hearing *h, int64_t rows);

/* Copies n bytes with U+FFFD in place of each that is no part of a character. to: room for 3 * n. Returns how many it has then. */
size_t llm_hearing_mend(char *to, const char *s, size_t n);

#endif
