/* Breaks lines between words on a terminal, while the text is still being written: a word that reaches
 * the edge is taken back and begins the next line. */
#ifndef TOOLS_WORD_WRAP_H
#define TOOLS_WORD_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { WORD_WRAP_LONGEST = 128 }; /* bytes; longer words are broken at the edge */

typedef struct word_wrap {
    FILE *out;
    int columns;                  /* of the terminal; 0: its own, asked for with every piece */
    int column, width;            /* where the cursor is; columns of the last word */
    char word[WORD_WRAP_LONGEST]; /* what was written of the last word */
    size_t n;
} word_wrap;

/* Writes text of whole characters; escape sequences take no columns. Begin a text with column and n 0.
 * Returns false if writing fails. */
bool word_wrap_put(word_wrap *w, const char *text, size_t n);

#endif
