/* Collects the parts of a choice for an answer without a stream, in their order: the pieces of a text become one part. */
#ifndef LLM_SERVER_ANSWER_PARTS_H
#define LLM_SERVER_ANSWER_PARTS_H

#include "answer_text.h"

/* A part with its own memory. */
typedef struct own_part {
    answer_part part;
    answer_bytes text;
    answer_token *token;
    size_t cap_tokens;
} own_part;

/* Zeroed before the first use. */
typedef struct answer_parts {
    own_part *own;
    size_t n, cap;
    ggl_arena arena;   /* strings of calls, and log-probabilities */
    answer_part *part; /* [n], set by answer_parts_end */
} answer_parts;

/* Copies a part. False: out of memory. */
bool answer_parts_add(answer_parts *l, const answer_part *part);
/* Returns all parts, whose number is *n; valid until answer_parts_fini. NULL: out of memory. */
answer_part *answer_parts_end(answer_parts *l, size_t *n);
void answer_parts_fini(answer_parts *l);

#endif
