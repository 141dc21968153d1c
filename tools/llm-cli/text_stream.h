/* Writes text to stdout, or to a file, as it comes, token by token, but never a part of a UTF-8
 * character: its first bytes wait for the rest. */
#ifndef TOOLS_TEXT_STREAM_H
#define TOOLS_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/internal/file.h"

typedef struct text_stream {
    ggl_new_file *file; /* borrowed; NULL: stdout */
    /* If not NULL, takes the text instead. False: it has failed. */
    bool (*take)(void *ctx, const char *text, size_t n);
    void *ctx;
    char waiting[4];
    size_t n;
    bool failed; /* writing failed; later text is dropped */
} text_stream;

void text_stream_put(text_stream *s, const char *text, size_t n);
/* Writes the waiting bytes, complete or not. */
void text_stream_end(text_stream *s);

/* Returns the length of the longest prefix of text[n] that ends between characters. A stray byte
 * counts as a character. */
size_t utf8_complete(const char *text, size_t n);

#endif
