/* The text of a generation that ends at one of several stop texts: what may become one is held back, and the rest is returned in whole
 * characters. */
#ifndef LIBRARY_STOPPED_TEXT_H
#define LIBRARY_STOPPED_TEXT_H

#include "llm/internal/stop.h"

/* All members 0 but found, which is -1: no text ends it. */
typedef struct stopped_text {
    llm_stop *stop; /* borrowed; NULL: there are no stop texts */
    size_t n_shown; /* the first of the stop texts are themselves a part of the text */
    int32_t found;  /* index of the stop text that ended the text; -1: none */
    /* [n_held] bytes that may be part of a stop text; hidden[i]: byte i is never returned. */
    char *held;
    bool *hidden;
    size_t n_held, cap_held, cap_hidden;
    /* [n_text] bytes that can be returned. The first n_given were returned, and stay until the next call of _give. */
    char *text;
    size_t n_text, n_given, cap_text;
} stopped_text;

void llm_stopped_text_fini(stopped_text *t);
/* Adds text. hidden: it takes part in stop texts, but is never returned (a special token). */
ggl_status llm_stopped_text_put(stopped_text *t, ggl_str text, bool hidden, ggl_error *err);
/* The text has ended: what is held back belongs to it, unless a stop text was found. GGL_NOMEM. */
ggl_status llm_stopped_text_end(stopped_text *t, ggl_error *err);
/* Empties it, for another text with these stop texts, at their beginning; NULL: none. What it had before is not freed. */
void llm_stopped_text_begin(stopped_text *t, llm_stop *stop);
/* True if there are whole characters to return. */
bool llm_stopped_text_has(const stopped_text *t);
/* Drops what was returned before, and returns the next piece of *n bytes, valid until the next call; NULL if none. all: also a part of a
 * character, because the text has ended. */
const char *llm_stopped_text_give(stopped_text *t, bool all, size_t *n);
/* Returns all text that can be returned, *n bytes that may end within a character, valid until the next _put or _end. Not
 * together with _give. */
const char *llm_stopped_text_take(stopped_text *t, size_t *n);

#endif
