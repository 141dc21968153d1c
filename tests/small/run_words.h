/* What test-small-words writes for run_words.c. */
#ifndef RUN_WORDS_H
#define RUN_WORDS_H

#include "small.h"

typedef struct word_cases {
    const small_plan *plan; /* with a tokenizer alone */
    const int32_t *want;    /* tokens of text i, with flags i % 4: [want_at[i], want_at[i + 1]) */
    const int32_t *want_at;
    size_t work_each, work; /* bytes of memory that are enough for a text */
    uint32_t text_hash[2];  /* of all tokens' texts; as the first of a text */
} word_cases;

#endif
