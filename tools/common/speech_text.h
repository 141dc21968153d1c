/* Speech that was written down, as text, subtitles or JSON. */
#ifndef TOOLS_SPEECH_TEXT_H
#define TOOLS_SPEECH_TEXT_H

#include <stdio.h>

#include "ggl/internal/os_stream.h"
#include "speech_lines.h"

enum { FORMAT_TEXT, FORMAT_TIMES, FORMAT_SRT, FORMAT_VTT, FORMAT_JSON, N_FORMATS };

typedef struct speech_text {
    FILE *to;
    int format;
    bool is_translated, has_words;
    bool
        is_told; /* FORMAT_TEXT: speech_text_said writes the text of pieces, and a piece ends its line */
    bool names_language; /* JSON: "english", as OpenAI writes it, not "en" */
    bool has_usage;      /* JSON: what OpenAI counts, the seconds */
    bool trims;          /* JSON: the whole text lacks the space at its beginning */
    /* JSON: words are a list of their own, without the spaces around them; and there are no segments. */
    bool words_apart, no_segments;
    lines lines;  /* of subtitles by words */
    int64_t n;    /* pieces */
    bool in_line; /* a line of text has begun */
    int64_t n_subtitles;
    double end;    /* of the last one */
    double window; /* where the window begins that is being written down, in seconds */
    char language[16];
    char *text; /* JSON: of all pieces */
    size_t n_text, cap_text;
    os_memory_stream words; /* the list of words; it is open if there are any */
    os_memory_stream
        warnings; /* what is wrong, as strings of JSON with commas between them; speech_text_end closes it */
    bool failed; /* out of memory */
} speech_text;

void speech_text_begin(speech_text *o);
/* They are in this language; without a call, JSON has null. */
void speech_text_language(speech_text *o, const char *code);
/* Pieces that follow are of the window that begins there. */
void speech_text_window(speech_text *o, double seconds);
/* Writes text of the next piece, as llm_transcribe_params.said gets it. */
void speech_text_said(speech_text *o, const char *text, size_t n);
void speech_text_piece(speech_text *o, const llm_speech *piece);
/* Returns how many seconds OpenAI counts of a sound: each that has begun. */
long long speech_text_seconds(double seconds);
/* JSON: adds to what is wrong with the sound, or with its text. */
void speech_text_warn(speech_text *o, const char *text);
/* duration: of the sound, in seconds; less than 0: it is not known. */
void speech_text_end(speech_text *o, double duration);
void speech_text_fini(speech_text *o);

#endif
