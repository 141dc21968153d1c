/* What llm-transcribe writes: text, subtitles or JSON. */
#ifndef TOOLS_TRANSCRIBE_OUTPUT_H
#define TOOLS_TRANSCRIBE_OUTPUT_H

#include <stdio.h>

#include "lines.h"
#include "options.h"

typedef struct output {
    FILE *to;
    int format;
    bool is_translated, has_words;
    lines lines; /* of subtitles by words */
    int64_t n;   /* pieces */
    int64_t n_subtitles;
    double end; /* of the last one */
    char language[16];
    char *text; /* JSON: of all pieces */
    size_t n_text, cap_text;
    bool failed; /* out of memory */
} output;

void output_begin(output *o);
void output_piece(output *o, const llm_speech *piece);
/* duration: of the sound, in seconds; less than 0: it is not known. */
void output_end(output *o, double duration);

#endif
