/* Text to stdout as it comes, token by token, but never half a UTF-8 character: bytes that may
 * still become one wait. */
#ifndef TOOLS_TEXT_STREAM_H
#define TOOLS_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct text_stream {
    char waiting[4];
    size_t n;
    bool failed; /* stdout took no more; what follows is dropped */
} text_stream;

void text_stream_put(text_stream *s, const char *text, size_t n);
/* Writes what waits, complete or not. */
void text_stream_end(text_stream *s);

/* Length of the longest prefix of text[0..n) that ends between characters; stray bytes count as
 * characters. */
size_t utf8_complete(const char *text, size_t n);

#endif
