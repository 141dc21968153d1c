/* What the slots of a session hold: tokens of sequences that run, and of those that have ended. A
 * prompt begins with the longest beginning that any slot has in common with it. */
#ifndef LLM_KEPT_H
#define LLM_KEPT_H

#include "run/sequence.h"
#include "snapshots.h"

typedef struct kept_slot {
    const seq *by; /* the sequence that runs in it; NULL: none */
    /* Without `by`: the tokens of the sequence that ran last; n 0: the slot is empty. */
    int32_t *token;
    int64_t n;
    uint64_t id;   /* of the sequence that runs, or ran last; the owner sets it */
    uint64_t used; /* the least was used longest ago */
    bool is_tried; /* by the current search */
} kept_slot;

typedef struct kept {
    llm_session *session;
    int n;
    kept_slot *slot; /* [n] */
    uint64_t time;   /* of `used` */
    bool has_states; /* the model's; snapshots are for these alone */
    snapshots snapshots;
} kept;

/* All slots are cleared. snapshot_bytes: memory for snapshots. */
ggl_status llm_kept_init(kept *k, llm_session *s, size_t snapshot_bytes, ggl_error *err);
void llm_kept_fini(kept *k);

/* The most tokens that any slot has in common with q, not counting q's last, and the most of those
 * that llm_kept_begin could take over. */
int64_t llm_kept_common(const kept *k, const seq *q);
int64_t llm_kept_offer(kept *k, const seq *q);
/* llm_kept_drop clears the slot that offers q most after all others. */
void llm_kept_spare(kept *k, const seq *q);
/* The tokens of the slot in whole pages that another slot begins with, too. */
int64_t llm_kept_shared(const kept *k, int slot);

/* Gives the sequence a slot; fewer sequences than slots must run. With `reuse` the slot then holds
 * the longest beginning of all tokens but the last that another slot had, else nothing: n_kept says
 * how many. What the slot held before is lost. */
ggl_status llm_kept_begin(kept *k, seq *q, bool reuse, ggl_error *err);
/* The sequence leaves its slot, which keeps what it holds and takes over the tokens. */
void llm_kept_end(kept *k, seq *q);
/* The sequence leaves its slot, which is cleared; the tokens stay its own. */
void llm_kept_give_back(kept *k, seq *q);
/* Keeps the states of a running sequence, which has run exactly n tokens, for others. */
void llm_kept_take_snapshot(kept *k, const seq *q, int64_t n);
/* Clears the slot that was used longest ago, of those in which no sequence runs. False: all of
 * those are empty. */
bool llm_kept_drop(kept *k);

#endif
