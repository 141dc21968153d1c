/* Finds special tokens in a text: at each position the longest that begins there. */
#ifndef LLM_SPECIAL_TOKENS_H
#define LLM_SPECIAL_TOKENS_H

#include "automaton.h"
#include "llm/internal/tokenizer.h"

typedef struct special_tokens {
    automaton all, user; /* all kinds; the user-defined ones */
} special_tokens;

typedef struct special_match {
    size_t at; /* first byte */
    int32_t id;
} special_match;

/* Add all tokens, then finish. Of equal spellings the first counts; spellings are not empty. */
GGL_NODISCARD ggl_status llm_special_init(special_tokens *x, ggl_error *err);
GGL_NODISCARD ggl_status llm_special_add(special_tokens *x, ggl_str spelling, int32_t id,
                                         bool user_defined, ggl_error *err);
GGL_NODISCARD ggl_status llm_special_finish(special_tokens *x, ggl_error *err);
void llm_special_fini(special_tokens *x);

/* Finds the longest token that begins at each position of text[0..n), listed from the last
 * position to the first. user_only: only user-defined tokens. The time is linear in n, whatever
 * the tokens are. The caller frees *out with ggl_free. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_special_find(const special_tokens *x, const char *text, size_t n,
                                          bool user_only, special_match **out, size_t *n_out,
                                          ggl_error *err);
/* The same in a part of a text: text[0] is its byte `offset`. No byte of the stretches in `given` is in a token that is not user-defined. */
GGL_NODISCARD ggl_status llm_special_find_between(const special_tokens *x, const char *text,
                                                  size_t n, const llm_spans *given, size_t offset,
                                                  special_match **out, size_t *n_out,
                                                  ggl_error *err);

#endif
