/* Patterns of whole names. The time is at most the product of both lengths. */
#ifndef LLM_GLOB_H
#define LLM_GLOB_H

#include "ggl/str.h"

/* True if a shell pattern matches the text: '*' stands for any text, '?' for one character, [a-z] and [!a-z] for one of (not)
 * these, and '\' takes the meaning from the next character. A '[' that nothing closes is a character as others. Characters are
 * those of UTF-8. */
bool llm_glob_matches(ggl_str pattern, ggl_str text);

/* The same for names that may have brackets: only '*' has a meaning, and the character `number` (0: none), which stands
 * for one or more digits. */
bool llm_stars_match(ggl_str pattern, char number, ggl_str text);

#endif
