/* What words became within one text: in most texts a few thousand words are nearly all. A word has one place, where it takes that of
 * another. */
#ifndef LLM_TEXT_WORD_MEMORY_H
#define LLM_TEXT_WORD_MEMORY_H

#include "llm/internal/tokenizer.h"

/* Zero it before the first use. Nothing is noted of the first words, so that a short text needs no memory. */
typedef struct word_memory {
    struct word_place *place; /* NULL: nothing is noted yet */
    char *bytes;              /* of all words: a word, then its ids */
    size_t n, cap;
    int n_asked;
} word_memory;

/* Appends what the word s[0..n) became, and returns 1. 0: it is not known; *key is for llm_word_note. -1: out of memory. */
int llm_word_recall(word_memory *m, const char *s, size_t n, llm_tokens *out, uint64_t *key);
/* Notes that the word became the ids of `out` from `first` on. False: out of memory. */
bool llm_word_note(word_memory *m, const char *s, size_t n, uint64_t key, const llm_tokens *out,
                   size_t first);
void llm_word_memory_fini(word_memory *m);

#endif
