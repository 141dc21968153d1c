/* When each word was said. The tokens of a window are run again, all at once, without those of times; the heads of attention that show which
 * part of the sound a token is about make a table of tokens and times, through which the cheapest way is sought (openai/whisper,
 * timing.py). */
#ifndef LIBRARY_SPEECH_WORDS_H
#define LIBRARY_SPEECH_WORDS_H

#include "llm/internal/session.h"
#include "speech_tokens.h"

typedef struct speech_word {
    double start,
        end; /* seconds after the window's beginning; after llm_speech_words_place, the sound's */
    double probability; /* the mean of its tokens' */
    size_t text,
        n_text; /* bytes of speech_words.text; n_text 0: it is a part of another word now */
} speech_word;

typedef struct speech_words {
    speech_word *word;
    size_t n, cap;
    char *text; /* of all words; bytes that may be no characters */
    size_t n_text, cap_text;
} speech_words;

/* A piece of the window. Its words are word[first .. first + n_words). */
typedef struct speech_piece {
    double start, end; /* seconds after the sound's beginning */
    size_t n_text;     /* tokens that are words */
    size_t first, n_words;
} speech_piece;

typedef struct speech_window {
    const int32_t *
        order; /* [n_orders]: what tells the model what to do, from <|startoftranscript|> on, without <|notimestamps|> */
    size_t n_orders;
    const int32_t *id; /* [n]: what was written, tokens of times and others among them */
    size_t n;
    int64_t n_rows;      /* rows of the stage that show sound; the others show what is behind it */
    double row_seconds;  /* from a row to the next */
    bool no_spaces;      /* between the words of the language */
    speech_piece *piece; /* [n_pieces]: whose tokens these are, in their order */
    size_t n_pieces;
} speech_window;

/* Finds the words of what was written of the window that slot 0 reads, and sets first and n_words of its pieces: no word goes on in the next
 * piece. The slot is empty before and afterwards. GGL_LIMIT: the context is too short; GGL_FORMAT: numbers that are not finite; GGL_NOMEM; as
 * llm_session_eval. Free with llm_speech_words_fini in any case. */
GGL_NODISCARD ggl_status llm_speech_words_find(speech_words *w, llm_session *s,
                                               const speech_tokens *t, const speech_window *window,
                                               ggl_error *err);
void llm_speech_words_fini(speech_words *w);

/* Makes signs parts of the words beside them, and shortens words that are too long, as published. Words then follow each other, from *last_end on,
 * where the last word before them ended, and none ends after `limit`, where the window's sound does; start and end of pieces become those of
 * their words. begin: the window's. Times are in seconds. Sets *last_end. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_speech_words_place(speech_words *w, double begin, double limit,
                                                speech_piece *piece, size_t n, double *last_end,
                                                ggl_error *err);

#endif
