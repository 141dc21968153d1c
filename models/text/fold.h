/* Text without accents, or in lower case, for the tokenizers whose files ask for that. The functions are an argument, so that a program
 * for a small board has only the tables of Unicode that its tokenizer needs. */
#ifndef LLM_FOLD_H
#define LLM_FOLD_H

#include "ggl/internal/alloc.h"
#include "unicode.h"

typedef struct folding {
    int (*strip)(uint32_t c,
                 uint32_t part[UNICODE_MOST_PARTS]); /* llm_fold_strip; NULL: accents stay */
    uint32_t (*lower)(uint32_t c,
                      uint32_t *mark); /* llm_unicode_lower; NULL: capital letters stay */
} folding;

enum { FOLD_MOST_PARTS = UNICODE_MOST_PARTS + 1 };

/* What a text of one byte can become at most: U+AC01, of 3 bytes, becomes three characters of 3 bytes. */
enum { FOLD_RATIO = 3 };

/* Decomposes c, and drops marks that take no space (Mn); returns the number of parts, which can be 0. */
int llm_fold_strip(uint32_t c, uint32_t part[UNICODE_MOST_PARTS]);

/* Writes the characters that c becomes; returns their number, which can be 0. */
int llm_fold_character(const folding *f, uint32_t c, uint32_t part[FOLD_MOST_PARTS]);

/* Folds a text into *out, an array that grows; bytes that are not UTF-8 stay. Returns false if out of memory. */
GGL_NODISCARD bool llm_fold_text(const folding *f, const char *text, size_t n, char **out,
                                 size_t *n_out, size_t *cap);

#endif
