/* Finds special tokens in text: at each position the longest that begins there. */
#ifndef LLM_SPECIAL_TOKENS_H
#define LLM_SPECIAL_TOKENS_H

#include "automaton.h"

typedef struct special_tokens {
    automaton all, user; /* of all kinds, and the user-defined ones among them */
} special_tokens;

typedef struct special_match {
    size_t at; /* first byte */
    int32_t id;
} special_match;

/* First all tokens are added, then it is finished. Of equal spellings the first counts; n > 0. */
GGL_NODISCARD ggl_status llm_special_init(special_tokens *x, ggl_error *err);
GGL_NODISCARD ggl_status llm_special_add(special_tokens *x, ggl_str spelling, int32_t id,
                                         bool user_defined, ggl_error *err);
GGL_NODISCARD ggl_status llm_special_finish(special_tokens *x, ggl_error *err);
void llm_special_fini(special_tokens *x);

/* For each position of text[0..n) where a token begins, the longest that does; from the last
 * position to the first. user_only: only user-defined tokens. The caller frees *out with ggl_free.
 * GGL_NOMEM. Takes time linear in n, whatever the tokens are. */
GGL_NODISCARD ggl_status llm_special_find(const special_tokens *x, const char *text, size_t n,
                                          bool user_only, special_match **out, size_t *n_out,
                                          ggl_error *err);

#endif
