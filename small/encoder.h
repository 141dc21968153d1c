/* What the tokenizers of text.c and split.c share. */
#ifndef SMALL_ENCODER_H
#define SMALL_ENCODER_H

#include <string.h>

#include "../models/text/merge_queue.h"
#include "small.h"

/* A text on its way to tokens. */
typedef struct small_encoder {
    const small_words *w;
    int32_t *token;
    int32_t n, most; /* tokens so far, and room for them */
    char *work;
    size_t work_size;
} small_encoder;

/* Appends a token; false: there is no room. */
bool small_append(small_encoder *e, int32_t token);
/* Appends the tokens of bytes, or the unknown token if one has none. */
bool small_append_bytes(small_encoder *e, const char *s, size_t n);
/* Returns the token with these bytes, of those that a text may become; -1: none. */
int32_t small_find(const small_words *w, const char *s, size_t n);

/* Functions of small_words.encode: with scores, and with merges. */
bool small_encode_scores(small_encoder *e, const char *text, size_t n, bool goes_on);
bool small_encode_merges(small_encoder *e, const char *text, size_t n, bool goes_on);

#endif
