/* The slots of a session: how many tokens each has, whether its cache and states are valid, and which pages
 * hold its rows. This is the only place that decides which rows of the cache a token of a batch writes and
 * sees: its position, which llm_slots_append returns, says both (ggl_visible_rows), and the pages of its
 * slot say where they are. Cutting, sharing, saving and failures go through these functions, so they
 * cannot disagree.
 *
 * A batch passes these steps: llm_slots_check_room with the tokens that llm_slots_append adds,
 * llm_slots_take_pages, for each ubatch llm_slots_append again and llm_slots_start, and at last
 * llm_slots_commit or llm_slots_settle. */
#ifndef LLM_SLOT_TABLE_H
#define LLM_SLOT_TABLE_H

#include "ggl/sched.h"
#include "pages.h"

typedef struct slot_state {
    int64_t n_past; /* tokens of the sequence, including those in flight */
    /* n_past at the last point with no batch in flight; restored by an abort */
    int64_t n_done;
    /* 1 + the highest position ever written. A ring has lost the rows that this overwrote, even
     * after a cut. */
    int64_t n_high;
    bool broken; /* a run or restore failed midway: rows or states are invalid */
} slot_state;

/* How many tokens slots have at most: n_ctx, and from slot n_first on, whose tokens others read, n_read. These have pages of
 * their own. */
typedef struct slot_limits {
    int64_t n_slots, n_first, n_ctx, n_read;
} slot_limits;

typedef struct slot_table {
    ggl_sched *sched; /* borrowed */
    slot_limits limits;
    int64_t n_slots;
    bool has_memory;   /* ggl_sched_alloc has succeeded, and the pages are set */
    bool has_states;   /* the model has states, which cannot go back */
    int64_t rollback;  /* rings have all rows while n_high - n_past is at most this */
    slot_state *state; /* [n_slots] */
    int64_t *n_new;    /* [n_slots]: tokens that the ubatch appends */
    int64_t *n_past;   /* [n_slots]: for llm_session_n_cached */
    uint64_t *ticket;  /* [n_slots]: of the submitted batch that the slot is in; or 0 */
    int32_t *page;     /* [n_slots][n_each]: the graph's input "page" */
    page_pool pages;   /* of slots that have tokens of their own */
    page_pool read;    /* of those whose tokens others read */
} slot_table;

/* No slot has tokens at first. False: out of memory; free the table all the same. */
bool llm_slots_init(slot_table *t, const ggl_graph *g, ggl_sched *sched, const slot_limits *limits);
void llm_slots_fini(slot_table *t);
/* Sets the graph's input "page" for the first time; the scheduler has its memory. */
ggl_status llm_slots_ready(slot_table *t, ggl_error *err);

/* GGL_USAGE: no such slot, it is in flight, or llm_slots_ready has not been called. */
ggl_status llm_slots_check(const slot_table *t, int slot, ggl_error *err);
/* Also refuses a broken slot. */
ggl_status llm_slots_check_whole(const slot_table *t, int slot, ggl_error *err);
/* Also checks that the slot's tokens after the first n_past can be dropped. */
ggl_status llm_slots_check_cut(const slot_table *t, int slot, int64_t n_past, ggl_error *err);
/* Checks that the slot can be restored to n_past tokens: all of it, or only its states. */
ggl_status llm_slots_check_restore(slot_table *t, int slot, int64_t n_past, bool states_only,
                                   ggl_error *err);

/* --- a batch --- */

/* Begins a batch or a ubatch: nothing is appended yet. */
void llm_slots_begin(slot_table *t);
/* Appends a token to the slot, and returns its position. */
int32_t llm_slots_append(slot_table *t, int slot);
/* GGL_LIMIT: the appended tokens, n in all, do not fit into the context, or need more pages than are
 * free. */
ggl_status llm_slots_check_room(slot_table *t, int64_t n, ggl_error *err);
/* Gives each slot the pages for its appended tokens, and a copy of its last page if it shares that. */
ggl_status llm_slots_take_pages(slot_table *t, ggl_error *err);
/* Counts the appended tokens as in flight. */
void llm_slots_start(slot_table *t);
/* Notes the ticket of all slots with appended tokens. */
void llm_slots_set_ticket(slot_table *t, uint64_t ticket);
/* Call when no batch is in flight: all tokens that were started are done. */
void llm_slots_commit(slot_table *t);
/* Ends a batch of all slots (ticket 0) or of those with the ticket: its tokens are done, or else taken back,
 * and a slot whose states or rings have moved on is broken. Pages that are not needed are given back. */
void llm_slots_settle(slot_table *t, uint64_t ticket, bool ok);

/* --- changes of a slot --- */

ggl_status llm_slots_clear(slot_table *t, int slot, ggl_error *err);
ggl_status llm_slots_cut(slot_table *t, int slot, int64_t n_past, ggl_error *err);
/* Makes slot dst hold the first n_past tokens of slot src. */
ggl_status llm_slots_share(slot_table *t, int dst, int src, int64_t n_past, ggl_error *err);
/* Begins a restore, after llm_slots_check_restore: the slot is broken, and, unless states_only, has pages
 * for n_past tokens. */
ggl_status llm_slots_begin_restore(slot_table *t, int slot, int64_t n_past, bool states_only,
                                   ggl_error *err);
/* Ends it: if ok, the slot has n_past tokens and was written up to n_high. */
void llm_slots_end_restore(slot_table *t, int slot, int64_t n_past, int64_t n_high, bool ok);

#endif
