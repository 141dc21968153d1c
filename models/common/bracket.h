/* Bracket expressions of regular expressions and shell patterns: [a-z_], [^[:digit:]]. */
#ifndef LLM_BRACKET_H
#define LLM_BRACKET_H

#include "ggl/str.h"

typedef struct llm_bracket {
    size_t end;        /* offset behind its ']'; 0: it is none */
    bool has;          /* whether it matches the character */
    const char *fault; /* if it is none: why */
    size_t at;         /* and the offset of the fault */
} llm_bracket;

/* Reads what follows the '[' before s.s[at], for a character of llm_take_char. A '\' takes its meaning from the
 * next character, also here; in regular expressions \d, \w and \s are classes, as outside of brackets. In a
 * shell pattern '!' negates, too, and a range may be empty. */
llm_bracket llm_bracket_read(ggl_str s, size_t at, bool is_shell, uint32_t c);

/* Returns the bracket expression for which \d, \D, \w, \W, \s or \S stands; NULL: another letter. */
const char *llm_bracket_named(char letter);
/* True for a letter or digit of ASCII, and for '_': what \w matches. */
bool llm_is_word(uint32_t c);

#endif
