/* The tokens of labels after a prompt.
 *
 * Threads: the functions have no state; any number of threads may call them at the same time, with a tokenizer of their own or a shared one. */
#ifndef LLM_LABEL_TOKENS_H
#define LLM_LABEL_TOKENS_H

#include "llm/internal/labels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_label_tokens {
    llm_tokens *whole; /* [n + 1]: prompt and label; the last one is the prompt alone */
    llm_label *label;  /* [n]: the part of each after the first n_prompt tokens, which all have */
    size_t n, n_prompt;
    size_t n_whole; /* tokens of the prompt alone */
} llm_label_tokens;

/* given: stretches of the prompt that have no control tokens, as of llm_tokenize_given; NULL: none. flags: of llm_tokenize. GGL_USAGE: a label
 * has no token of its own, or nothing is left of the prompt; GGL_LIMIT: the prompt has more than `most` tokens; GGL_NOMEM. If the prompt ends with a control token and a text after it, as that of a
 * conversation does, the text before that token is read once, else for each label. After a failure, too, it is to be freed. */
GGL_NODISCARD ggl_status llm_label_tokens_read(llm_label_tokens *x, const llm_tokenizer *t,
                                               const llm_spans *given, ggl_str prompt,
                                               unsigned flags, size_t most, const ggl_str *label,
                                               size_t n, ggl_error *err);
void llm_label_tokens_fini(llm_label_tokens *x);

#ifdef __cplusplus
}
#endif

#endif
