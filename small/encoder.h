/* What the kinds of tokenizers share: text.c has it. */
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

/* What a space of a text becomes where small_words.spaced is set. There a space stands for it, as one byte. */
#define SMALL_MARK "\xe2\x96\x81"
/* Returns the length of a character of n > 0 bytes that may be such a mark, and sets *is_mark. An invalid byte is a character. */
size_t small_character(const char *s, size_t n, bool *is_mark);

/* Appends a token; false: there is no room. */
bool small_append(small_encoder *e, int32_t token);
/* True if all of these bytes have tokens. */
bool small_has_bytes(const small_words *w, const char *s, size_t n);
/* Appends the tokens of those bytes that have one. */
bool small_append_known(small_encoder *e, const char *s, size_t n);
/* Appends the tokens of bytes, or the unknown token if one has none. */
bool small_append_bytes(small_encoder *e, const char *s, size_t n);
/* True for a character, s[0..n), of white space. */
bool small_is_white(const char *s, size_t n);

static inline uint32_t small_number(const small_numbers *x, uint32_t i) {
    const uint8_t *p = x->byte + (size_t)i * x->width;
    uint32_t u = 0;
    for (unsigned k = 0; k < x->width; k++)
        u |= (uint32_t)p[k] << 8 * k;
    return u;
}
/* Returns the bytes of a string, and their number *n. */
const char *small_string(const small_words *w, int32_t string, size_t *n);

/* Returns the token with these bytes; -1: none. */
int32_t small_find(const small_words *w, const small_keys *k, const char *s, size_t n);

/* The keys that begin with the bytes of a text that were read so far: keys [low, high). */
typedef struct small_walk {
    uint32_t low, high, depth;
} small_walk;
small_walk small_walk_begin(const small_keys *k);
/* Reads another byte; false: no key goes on with it. */
bool small_walk_on(const small_words *w, const small_keys *k, small_walk *at, unsigned char byte);
/* Returns the token whose key is what was read; -1: there is none. */
int32_t small_walk_token(const small_words *w, const small_keys *k, const small_walk *at);
/* Returns the token with the longest key that s[0..n) begins with, of those tokens that have all of `flags` (SMALL_USER ..; 0: any), and
 * sets *length; -1: none. */
int32_t small_longest(const small_words *w, const small_keys *k, const char *s, size_t n,
                      unsigned flags, size_t *length);

/* Functions of small_words.encode: each appends the tokens of a text without special tokens; false: `token` or the memory is full. */
bool small_encode_scores(small_encoder *e, const char *text, size_t n);
bool small_encode_merges(small_encoder *e, const char *text, size_t n);
bool small_encode_dna(small_encoder *e, const char *text, size_t n);
bool small_encode_best(small_encoder *e, const char *text, size_t n);
bool small_encode_best_back(small_encoder *e, const char *text, size_t n);
bool small_encode_longest(small_encoder *e, const char *text, size_t n);
bool small_encode_wordpiece(small_encoder *e, const char *text, size_t n);

#endif
