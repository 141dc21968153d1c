/* Finds special tokens in text: at each position the longest that begins there. */
#ifndef LLM_SPECIAL_TOKENS_H
#define LLM_SPECIAL_TOKENS_H

#include "ggl/index.h"

typedef struct special_node {
    int32_t parent, byte; /* the key: this node's spelling is `byte` and then the parent's */
    int32_t shorter;   /* the node of the longest proper prefix of this spelling that has a node */
    int32_t any, user; /* the longest token (any: of all kinds, user: user-defined) that is a
                             prefix of this spelling; -1: none */
} special_node;

typedef struct special_tokens {
    special_node *node; /* node[0] is the root: the empty spelling */
    size_t n, cap;
    ggl_index child; /* nodes by parent and byte */
    int32_t child_of_root[256];
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
