/* Pre-tokenizers split text into words by regular expressions, before a tokenizer sees it. The
 * expressions are data (tokenizers.txt), in the notation in which models publish them. The
 * supported subset:
 *
 *     literals, \r \n \t \x{HEX}, \ before punctuation
 *     [...] [^...] with ranges, and &&[^...] at the end of one
 *     \s \S \d \D \w \W \p{..} \P{..}
 *     x? x* x+ x{m} x{m,} x{m,n}, greedy
 *     x?+ x*+ x++ (possessive) after single characters
 *     x|y, (x), (?:x), (?i:x)
 *     (?=x) (?!x), ^ $ \b
 *
 * \p: L Lu Ll Lt Lm Lo M N Nd P S Han. \s is White_Space, \d is Nd. ^ and $ are the ends of
 * the piece; no assertion looks beyond them. (?i:x) ignores the case of ASCII letters (U+017F
 * also counts as s, U+212A as k). */
#ifndef LLM_PRETOK_H
#define LLM_PRETOK_H

#include "ggl/internal/alloc.h"
#include "ggl/gguf.h"

typedef struct pretok_program pretok_program;

/* Compiles an expression into the arena. GGL_FORMAT: err names the byte and the mistake. */
GGL_NODISCARD ggl_status llm_pretok_compile(const pretok_program **out, ggl_arena *arena,
                                            ggl_str pattern, ggl_error *err);

/* The same for an expression of a tokenizer.json, which Oniguruma reads: ^ and $ are the ends of a line, . is any character but a newline,
 * \A and \z are the ends of the piece. matches_nothing: whether it matches an empty text somewhere. */
GGL_NODISCARD ggl_status llm_pretok_compile_lines(const pretok_program **out, ggl_arena *arena,
                                                  ggl_str pattern, bool *matches_nothing,
                                                  ggl_error *err);
/* A program that matches this text. */
GGL_NODISCARD ggl_status llm_pretok_compile_text(const pretok_program **out, ggl_arena *arena,
                                                 ggl_str text, ggl_error *err);

/* True if a text may be split elsewhere once one of these characters takes the place of the other. */
bool llm_pretok_tells_apart(const pretok_program *p, uint32_t a, uint32_t b);

/* Splits text[0..n) by programs[0], each piece of that by programs[1], and so on. Pieces are the
 * matches of a program and the text between them; a match of length 0 splits, too. Calls `word`
 * for each piece of the last program, from left to right; together they are the text. A byte
 * outside of valid UTF-8 is a character of its own, with the properties of U+FFFD. Fails with
 * GGL_NOMEM, GGL_LIMIT or the result of `word`, if not GGL_OK. */
GGL_NODISCARD ggl_status llm_pretok_split(
    const pretok_program *const *programs, int n_programs, const char *text, size_t n,
    ggl_status (*word)(void *context, const char *s, size_t n), void *context, ggl_error *err);

/* Memory for llm_pretok_find, which one thread at a time uses. NULL: out of memory. */
typedef struct pretok_finder pretok_finder;
pretok_finder *llm_pretok_finder_new(void);
void llm_pretok_finder_free(pretok_finder *f);
/* Calls `found` with the ends of each match, from left to right. No match begins in another; one of length 0 does not follow
 * another match at once. Fails with GGL_NOMEM, GGL_LIMIT or the result of `found`. */
typedef ggl_status pretok_found(void *context, size_t from, size_t to);
GGL_NODISCARD ggl_status llm_pretok_find(pretok_finder *f, const pretok_program *p,
                                         const char *text, size_t n, pretok_found *found,
                                         void *context, ggl_error *err);

#endif
