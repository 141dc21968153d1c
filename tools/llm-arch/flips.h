/* Other readings of a descriptor, for llm-arch doctor: its text with one choice changed in which
 * families differ. */
#ifndef TOOLS_ARCH_FLIPS_H
#define TOOLS_ARCH_FLIPS_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/status.h"

typedef struct flip {
    const char *what; /* "rotated pairs" */
    char reading[96]; /* "neighbours" */
    char *s;          /* the changed text; it may not be a valid descriptor */
    size_t n;
} flip;

typedef struct flips {
    const char *s; /* the descriptor's text, borrowed */
    size_t n;
    flip at[64];
    int n_at;
    bool failed; /* out of memory: some readings are missing */
} flips;

/* Lists the readings of the descriptor's text; free them with flips_fini. */
void flips_find(flips *f, const char *s, size_t n);
void flips_fini(flips *f);

/* Returns whether the text has this name or key outside of comments, strings and the convert
 * section. */
bool flips_reads(const char *s, size_t n, const char *word);

#endif
