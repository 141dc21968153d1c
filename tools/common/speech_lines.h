/* Subtitles by words: how many stand in one and in a line, and which one is said. The rules are those of openai/whisper (utils.py). */
#ifndef TOOLS_SPEECH_LINES_H
#define TOOLS_SPEECH_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "llm/llm.h"

typedef struct line_word {
    double start, end;
    size_t text, n; /* bytes of lines.text, perhaps with a line's end before them */
} line_word;

typedef struct lines {
    /* Set by the caller; 0: any number. */
    int64_t most_words; /* in a subtitle */
    int64_t most_width; /* characters of a line */
    int64_t most_lines; /* of a subtitle, which then does not end where a piece does */
    bool highlight;     /* a subtitle for each word, which is <u>underlined</u> */
    void (*put)(void *ctx, double start, double end, const char *text, size_t n);
    void *ctx;
    /* the subtitle that is being made */
    line_word *word;
    size_t n, cap;
    char *text;
    size_t n_text, cap_text;
    int64_t n_lines, width; /* width: of its last line */
    double last;            /* where the last word began */
    char *shown;
    size_t cap_shown;
    bool failed; /* out of memory */
} lines;

/* True if subtitles are not simply the pieces. */
bool lines_are_wanted(const lines *l);
/* Adds the words of a piece; calls put for subtitles that are complete. */
void lines_add(lines *l, const llm_speech *piece);
/* Calls put for the rest, and frees the memory. */
void lines_end(lines *l);

#endif
