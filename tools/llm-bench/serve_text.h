/* Texts and bodies of the requests that `llm-bench serve` sends. The same seeds give the same
 * bytes on all machines, so that all servers get the same requests. */
#ifndef TOOLS_BENCH_SERVE_TEXT_H
#define TOOLS_BENCH_SERVE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the next number of a sequence that begins with any *state. */
uint64_t serve_random(uint64_t *state);
/* Returns a seed that depends on all of these numbers. */
uint64_t serve_seed(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
/* Returns a time until the next of events that come at random, `rate` in a second on average. */
double serve_gap(uint64_t *state, double rate);

/* Writes n words, with spaces between them; none of them needs escapes in JSON. */
void serve_put_words(FILE *out, uint64_t seed, size_t n);

typedef struct serve_body {
    const char *model;
    /* The prompt's text, or, for chat, the elements of `messages`: already JSON */
    const char *prompt;
    size_t n_prompt;
    bool chat;
    int64_t max_tokens;
    uint64_t seed;
    double temperature;
    bool ignore_eos;          /* llama.cpp's extension: the answer has max_tokens */
    const char *const *field; /* [n_fields] "NAME=JSON": further members */
    size_t n_fields;
} serve_body;

/* Writes the body of a request for a streamed answer. */
void serve_put_body(FILE *out, const serve_body *b);
/* Returns NULL if s is NAME=JSON, and serve_put_body does not write NAME itself;
 * else an error text. */
const char *serve_check_field(const char *s);

#endif
