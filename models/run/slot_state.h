/* How far a slot's sequence has come, and whether what is kept of it can be trusted. Only these
 * functions change it, so that cutting, copying, saving and failing cannot disagree. */
#ifndef LLM_SLOT_STATE_H
#define LLM_SLOT_STATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct slot_state {
    int64_t n_past; /* tokens of the sequence, those in flight included */
    /* n_past at the last moment without a batch in flight: an abort goes back to it */
    int64_t n_done;
    /* one more than the highest position ever written. Rings have lost the rows that this pushed
     * out, also after a cut */
    int64_t n_high;
    bool broken; /* a run or a restore failed half way: the rows or states are of no use */
} slot_state;

/* What the model allows. */
typedef struct slot_rules {
    bool has_states;  /* they sum up all tokens: nothing goes back */
    int64_t rollback; /* n_high - n_past is at most this, or a ring has lost rows */
} slot_rules;

/* n tokens are about to run, from position n_past on. */
void llm_slot_begin(slot_state *s, int64_t n);
/* No batch is in flight: all that was begun is done. */
void llm_slot_commit(slot_state *s);
/* What was begun and not committed has failed: the slot goes back to where it was, or is broken if
 * its states or rings have moved on. */
void llm_slot_abort(slot_state *s, const slot_rules *r);

void llm_slot_clear(slot_state *s);
/* Whether the rows allow to go on from position n_past; the states are another question. */
bool llm_slot_can_go_back(const slot_state *s, const slot_rules *r, int64_t n_past);
/* The sequence has n_past tokens now: cut, or restored with its own n_high. */
void llm_slot_set(slot_state *s, int64_t n_past, int64_t n_high);
/* The slot's states are being overwritten, and with `rows` its rows, too, so that it has no tokens
 * that could be gone back to. llm_slot_set or llm_slot_clear ends that. */
void llm_slot_break(slot_state *s, bool rows);

#endif
