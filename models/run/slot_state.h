/* The state of a slot: how many tokens it has, and whether its cache and states are valid. Only
 * these functions change it, so that cutting, copying, saving and failures cannot disagree. */
#ifndef LLM_SLOT_STATE_H
#define LLM_SLOT_STATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct slot_state {
    int64_t n_past; /* tokens of the sequence, including those in flight */
    /* n_past at the last point with no batch in flight; restored by an abort */
    int64_t n_done;
    /* 1 + the highest position ever written. A ring has lost the rows that this overwrote, even
     * after a cut. */
    int64_t n_high;
    bool broken; /* a run or restore failed midway: rows or states are invalid */
} slot_state;

/* Limits of the model. */
typedef struct slot_rules {
    bool has_states;  /* it has states, which cannot go back */
    int64_t rollback; /* rings have all rows while n_high - n_past is at most this */
} slot_rules;

/* Call before n tokens run, from position n_past on. */
void llm_slot_begin(slot_state *s, int64_t n);
/* Call when no batch is in flight: all tokens begun are done. */
void llm_slot_commit(slot_state *s);
/* Call when tokens begun but not committed have failed: goes back to n_done, or marks the slot
 * broken if its states or rings have moved on. */
void llm_slot_abort(slot_state *s, const slot_rules *r);

void llm_slot_clear(slot_state *s);
/* True if the cache's rows allow going back to n_past. Does not consider states. */
bool llm_slot_can_go_back(const slot_state *s, const slot_rules *r, int64_t n_past);
/* Sets the sequence's length after a cut, or after a restore with its own n_high. */
void llm_slot_set(slot_state *s, int64_t n_past, int64_t n_high);
/* Marks a slot broken while its states, and with `rows` also its rows, are overwritten. With
 * `rows` it has no tokens until llm_slot_set or llm_slot_clear ends this. */
void llm_slot_break(slot_state *s, bool rows);

#endif
