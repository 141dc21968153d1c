/* Lists of tokens in keys of a model's file.
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef LLM_TOKEN_LIST_H
#define LLM_TOKEN_LIST_H

#include "ggl/internal/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The key of tokens that are never chosen: llm_session_writable. */
#define LLM_SUPPRESS_TOKENS "tokenizer.ggml.suppress_tokens"

typedef struct llm_token_list {
    int32_t *id; /* [n]; -1: a number that cannot be a token */
    size_t n;
} llm_token_list;

/* Reads a key; n is 0 if there is none. GGL_FORMAT: it is no list of whole numbers; GGL_NOMEM. Free with llm_token_list_fini in any
 * case. */
GGL_NODISCARD ggl_status llm_token_list_read(llm_token_list *out, const ggl_gguf *file,
                                             const char *key, ggl_error *err);
void llm_token_list_fini(llm_token_list *l);

#ifdef __cplusplus
}
#endif
#endif
