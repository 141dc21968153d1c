/* How BERT's texts become words: control characters are dropped, accents too if the folding says so, and letters become lower case.
 * White space separates words; punctuation marks and Chinese characters are words of their own. */
#ifndef LLM_BERT_WORDS_H
#define LLM_BERT_WORDS_H

#include "fold.h"

enum { BERT_WORD_CHARACTERS = 100, BERT_WORD_BYTES = 4 * BERT_WORD_CHARACTERS };

typedef struct bert_words {
    folding fold;
    /* Called for each word, n > 0. is_long: it has more than BERT_WORD_CHARACTERS, and these are the first. */
    bool (*word)(void *context, const char *s, size_t n, bool is_long);
    void *context;
    char s[BERT_WORD_BYTES]; /* the current word; zeroed by the caller, as the rest */
    size_t n, n_character;
} bert_words;

/* Cuts a text into words; returns false if word() did. Bytes that are not UTF-8 are dropped. */
bool llm_bert_words(bert_words *w, const char *text, size_t n);

#endif
