/* Divides tokens into words, as the published program does (openai/whisper, tokenizer.py): a word begins with a space, or is a sign; in languages that are
 * written without spaces, each character is one. Tokens that are parts of a character belong to one word. */
#ifndef LIBRARY_WORD_SPLIT_H
#define LIBRARY_WORD_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/status.h"

typedef struct word_part {
    size_t n_tokens;
    size_t text, n_text; /* bytes of the text */
} word_part;

/* True if words of the language with this code have no spaces between them. */
GGL_INTERNAL_API bool llm_word_has_no_spaces(const char *language);

/* Divides a text whose token k has the bytes text[at[k] .. at[k + 1]), k below n. Sets part[*n_parts], which has room for n. */
void llm_word_split(const char *text, const size_t *at, size_t n, bool no_spaces, word_part *part,
                    size_t *n_parts);

/* True if the n bytes are a part of this list of signs, which may be none. */
bool llm_word_is_of(const char *list, const char *s, size_t n);
/* Leaves spaces at both ends out. */
void llm_word_trim(const char **s, size_t *n);

#endif
