/* Keeps account of the tokens in a session's slots: those of sequences that run, and of sequences that have
 * ended. A new sequence starts from the slot that has the longest beginning in common with it, so that this
 * part of its prompt need not run again. */
#ifndef LLM_KEPT_H
#define LLM_KEPT_H

#include "sequence.h"
#include "snapshots.h"

typedef struct kept_slot {
    const seq *by; /* the sequence that runs in it; NULL: none */
    /* If none runs, the tokens of the one that ran last; n 0: the slot is empty. */
    int32_t *token;
    int64_t n;
    int64_t n_all;     /* with those after them, which were drawn and have not run */
    uint64_t id;       /* of the sequence that runs, or ran last; the owner sets it, as the next */
    int64_t n_prompt;  /* tokens of its prompt; what follows is its answer */
    uint64_t last_use; /* kept.clock at the last use */
    bool is_tried;     /* by the current search */
} kept_slot;

typedef struct kept {
    llm_session *session;
    int n;
    kept_slot *slot; /* [n] */
    size_t n_tasks;  /* of the session */
    float *
        share; /* [n][n_tasks]: with which the tokens of slots in which no sequence runs have run */
    kept_slot **order; /* [n]: scratch of llm_kept_drop, as the next */
    int *victim;
    uint64_t clock;  /* counts uses */
    bool has_states; /* the model's; snapshots are for these alone */
    snapshots snapshots;
} kept;

/* All slots are cleared. snapshot_bytes: memory for snapshots. */
ggl_status llm_kept_init(kept *k, llm_session *s, size_t snapshot_bytes, ggl_error *err);
void llm_kept_fini(kept *k);

/* Return how many tokens at the beginning of q, without its last one, the best slot has, and how many the
 * best slot can give llm_kept_begin. A model with states can only go back to a snapshot, which may be less. */
int64_t llm_kept_common(const kept *k, const seq *q);
int64_t llm_kept_offer(kept *k, const seq *q, int but); /* slot `but` is left out; -1: no slot is */
/* Returns the slot that can give q the most tokens, and sets *n to their number; -1: no slot can give any.
 * Marks the slot as just used, so that llm_kept_drop clears it last. */
int llm_kept_spare(kept *k, const seq *q, int64_t *n);

/* Returns how many tokens at its beginning q, whose prompt has n_prompt, has in common with the prompt of a slot that goes on
 * differently, within both prompts: the most of all slots. */
int64_t llm_kept_parted(const kept *k, const seq *q, int64_t n_prompt);
/* Returns a slot in which no sequence runs, of which there must be one, emptied: -1: that has failed. */
int llm_kept_empty(kept *k);

/* Gives the sequence a slot: `want`, if no sequence runs there (-1: any). There must be one in which no sequence runs.
 * With `reuse` the slot then holds as many of the sequence's tokens as the best slot can give; else it is empty. Sets
 * q->n_kept to their number. The tokens that the slot held before are lost. */
ggl_status llm_kept_begin(kept *k, seq *q, bool reuse, int want, ggl_error *err);
/* Lets q hold what the sequence `from` does: in its own slot, or, if it has none, in one in which no sequence runs, of which there must be one.
 * q's tokens must begin with those of `from`. */
ggl_status llm_kept_copy(kept *k, seq *q, const seq *from, ggl_error *err);
/* The sequence leaves its slot, which keeps its contents and becomes the owner of q->token. */
void llm_kept_end(kept *k, seq *q);
/* The sequence leaves its slot, which is cleared. The sequence keeps its tokens. */
void llm_kept_give_back(kept *k, seq *q);
/* For a slot in which no sequence runs, and which was changed: it holds these tokens, run with the session's shares, and owns them. NULL: none; if the
 * session's slot is not empty, it is cleared. */
void llm_kept_adopt(kept *k, int slot, int32_t *token, int64_t n);
/* Takes a snapshot of the states of a sequence that has run exactly n tokens, for others. */
void llm_kept_take_snapshot(kept *k, const seq *q, int64_t n);
/* Clears slots in which no sequence runs, those used longest ago first, until the pages of the session's
 * estimate (run/session_room.h) suffice. Slots whose pages do not help stay, as does slot `but` (-1:
 * none). False: the pages cannot suffice, and nothing was cleared. */
bool llm_kept_drop(kept *k, int but);
/* True if there is room for the text that q reads, beside those of the sequences that run. shares: a slot that has read
 * it gives it. True if q reads none. */
bool llm_kept_can_read(kept *k, const seq *q, bool shares);
/* Makes this room, for a q that has a slot and none of its tokens there: empties slots in which no sequence runs, those
 * used longest ago first. */
void llm_kept_make_room_to_read(kept *k, const seq *q);
/* Returns how many pages would be missing if all slots in which no sequence runs were cleared. */
int64_t llm_kept_lacking(kept *k);

#endif
