/* Snapshots of a model's states after the first n tokens of sequences, for slots whose tokens begin
 * so. The least recently used ones are dropped when they take more than their memory. */
#ifndef LLM_SNAPSHOTS_H
#define LLM_SNAPSHOTS_H

#include "llm/session.h"

typedef struct snapshot {
    int32_t *token; /* [n] */
    int64_t n;
    void *data; /* llm_session_save, states only */
    size_t size;
    uint64_t used; /* the least was used longest ago */
} snapshot;

typedef struct snapshots {
    snapshot *at;
    size_t n, cap;
    size_t bytes, most_bytes;
    uint64_t time; /* of `used` */
} snapshots;

/* Keeps the states of a slot, which holds these n tokens. If there is no memory for them, nothing
 * is kept. */
void llm_snapshots_add(snapshots *s, llm_session *session, int slot, const int32_t *token,
                       int64_t n);
/* The snapshot with the most tokens that token[0 .. n) begins with. NULL: there is none. Valid
 * until the next llm_snapshots_add. */
snapshot *llm_snapshots_find(const snapshots *s, const int32_t *token, int64_t n);
/* Notes that a snapshot was used: it is dropped after those used longer ago. */
void llm_snapshots_use(snapshots *s, snapshot *x);
void llm_snapshots_fini(snapshots *s);

#endif
