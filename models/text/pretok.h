/* Pre-tokenizers: text is cut into words by regular expressions, before a tokenizer looks at the
 * words. The expressions are data (tokenizers.txt), in the notation in which they are published;
 * this is the part of it that they use:
 *
 *     literals, \r \n \t \x{HEX}, \ before punctuation
 *     [...] [^...] with ranges, and &&[^...] at the end of one
 *     \s \S \d \D \w \W \p{..} \P{..}
 *     x? x* x+ x{m} x{m,} x{m,n}, greedy
 *     x?+ x*+ x++ (possessive) after single characters
 *     x|y, (x), (?:x), (?i:x)
 *     (?=x) (?!x), ^ $ \b
 *
 * \p: L Lu Ll Lt Lm Lo M N Nd P S Han. \s is White_Space, \d is Nd. ^ and $ are the ends of the
 * piece, beyond which nothing is seen, either. (?i:x) folds the case of ASCII letters (and U+017F,
 * which folds to s; U+212A, to k).
 */
#ifndef LLM_PRETOK_H
#define LLM_PRETOK_H

#include "ggl/alloc.h"
#include "ggl/gguf.h"

typedef struct pretok_program pretok_program;

/* Compiles an expression into the arena. GGL_FORMAT: err says what is wrong at which byte. */
GGL_NODISCARD ggl_status llm_pretok_compile(const pretok_program **out, ggl_arena *arena,
                                            ggl_str pattern, ggl_error *err);

/* Cuts text[0..n) by programs[0], each piece of that by programs[1], and so on: what a program
 * matches is a piece, and what lies between two matches; matches of length 0 cut, too. Calls `word`
 * for each of the last pieces, from left to right; they join to the text. A byte that is part of no
 * valid UTF-8 character is a character of its own, of the kind of U+FFFD. What `word` returns other
 * than GGL_OK ends it. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_pretok_split(
    const pretok_program *const *programs, int n_programs, const char *text, size_t n,
    ggl_status (*word)(void *context, const char *s, size_t n), void *context, ggl_error *err);

#endif
