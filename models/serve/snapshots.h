/* Snapshots of a model's states after the first n tokens of sequences, for slots that begin with the same
 * tokens. When they take more memory than allowed, the least recently used are dropped. */
#ifndef LLM_SNAPSHOTS_H
#define LLM_SNAPSHOTS_H

#include "llm/internal/prompt_cache.h"

typedef struct snapshot {
    int32_t *token; /* [n] */
    int64_t n;
    float *share; /* [n_tasks] of the session: with which they ran */
    void *data;   /* llm_session_save, states only */
    size_t size;
    uint64_t last_use; /* snapshots.clock at the last use */
} snapshot;

typedef struct snapshots {
    snapshot *at;
    size_t n, cap, n_tasks;
    size_t bytes, most_bytes;
    uint64_t clock; /* counts uses */
} snapshots;

/* Keeps the states of a slot, which holds these n tokens, run with these shares (llm_batch.share). If there is no memory for them, nothing
 * is kept. */
void llm_snapshots_add(snapshots *s, llm_session *session, int slot, const float *share,
                       const int32_t *token, int64_t n);
/* Keeps a copy of states that were saved elsewhere, after token[0 .. x->n). */
void llm_snapshots_put(snapshots *s, const float *share, const int32_t *token,
                       const llm_prompt_states *x);
/* Lists those with these shares from which a sequence token[0 .. n) could go on before its end, by rising tokens. *out is to be freed; its data is
 * valid until the next change. GGL_NOMEM. */
ggl_status llm_snapshots_list(const snapshots *s, const float *share, const int32_t *token,
                              int64_t n, llm_prompt_states **out, size_t *n_out, ggl_error *err);
/* Returns the longest snapshot with these shares whose tokens are the beginning of token[0 .. n), or NULL. Valid until the next
 * llm_snapshots_add. */
snapshot *llm_snapshots_find(const snapshots *s, const float *share, const int32_t *token,
                             int64_t n);
/* Marks a snapshot as just used. */
void llm_snapshots_use(snapshots *s, snapshot *x);
void llm_snapshots_fini(snapshots *s);

#endif
