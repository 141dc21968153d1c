/* Texts to vectors or scores: packs texts of any lengths into batches. A text's numbers have the same bits whatever
 * runs beside it.
 *
 * Threads: as the session. */
#ifndef LLM_EMBED_H
#define LLM_EMBED_H

#include "llm/internal/head.h"
#include "llm/internal/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_embed_text {
    const int32_t *token;
    size_t n;
    const int32_t *type; /* [n], as of llm_batch; NULL: all are 0 */
    const float *share;  /* of all its tokens, as of llm_batch; NULL: llm_session_shares */
    int32_t n_seen;      /* as of llm_batch.seen */
    int64_t n_before;    /* tokens at its beginning that the pooling leaves out: of a prompt */
} llm_embed_text;

typedef struct llm_embedding_params {
    const llm_embed_text *text; /* [n_texts]: each at least one token, or any number if `empty` */
    size_t n_texts;
    const char *name,
        *limit; /* for messages: of the list, "texts"; what says how long a text may be */
    size_t
        first; /* the number of text[0], for `each` and messages, where these are a part of more */
    /* LLM_POOL_RANK: the model's output "score". Of one row if the descriptor picks one, or if the model is causal: the
     * last token's; else a row for each token. */
    llm_pooling pooling;
    const llm_head *head; /* of this pooling; NULL: the pooling alone */
    int64_t n_dims;       /* the numbers of a vector that are kept; 0: all */
    bool empty;           /* a text may have no tokens: what `head` makes of no rows */
    bool normalize;       /* vectors of length 1; not with LLM_POOL_NONE and LLM_POOL_RANK */
    /* Takes a text's rows of n numbers, all at once, valid during the call. Texts come in their order. False stops, with
     * GGL_CANCELLED. */
    bool (*each)(void *ctx, size_t text, int64_t n_rows, const float *row, int64_t n);
    void *ctx;
} llm_embedding_params;

/* Uses all slots of the session, which must be empty, and leaves them empty. GGL_USAGE: a text without tokens, or the
 * session lacks the output; GGL_LIMIT: a text is longer than the context, with its number; and as
 * llm_session_eval. */
GGL_NODISCARD ggl_status llm_embed_all(llm_session *s, const llm_embedding_params *p,
                                       ggl_error *err);

/* Checks the texts and what is wanted of them, as llm_embed_all does before it runs anything. GGL_USAGE, GGL_LIMIT. */
GGL_NODISCARD ggl_status llm_embed_check(const llm_session *s, const llm_embedding_params *p,
                                         ggl_error *err);
/* Returns how many of the texts from `begin` on make n_batches batches of a run of all. */
size_t llm_embed_some(const llm_session *s, const llm_embedding_params *p, size_t begin,
                      int n_batches);

/* Gets the tokens of a text of n, at least 1, whose rows of the output are wanted: *first .. *end - 1. sees_all: llm_arch_result. LLM_POOL_RANK: rows of
 * scores, else of embeddings. n_before: as of llm_embed_text. */
GGL_INTERNAL_API void llm_output_range(const llm_arch_output *out, bool sees_all,
                                       llm_pooling pooling, int64_t n_before, int64_t n,
                                       int64_t *first, int64_t *end);
/* The same of a session's output. */
void llm_embed_range(const llm_session *s, llm_pooling pooling, int64_t n_before, int64_t n,
                     int64_t *first, int64_t *end);

#ifdef __cplusplus
}
#endif
#endif
