/* Which rows of the stores a batch sees and writes, and which bytes of the stores they are. All files of
 * the scheduler that ask this ask here; what one element of the batch sees is ggl_visible_rows. */
#ifndef GGL_SCHED_STORE_ROWS_H
#define GGL_SCHED_STORE_ROWS_H

#include "graph/graph_impl.h"

/* What a batch does with the rows of a slot; end 0: nothing. */
typedef struct slot_rows {
    int64_t low, high; /* the lowest and highest position that it writes */
    int64_t end;       /* it sees positions below this */
} slot_rows;

/* The rows that a batch sees and writes. */
typedef struct row_use {
    slot_rows *of;        /* [n_slots] */
    uint64_t n_pages_set; /* inputs.n_pages_set when it began */
} row_use;

/* Allocates `of` for the graph's slots; false: out of memory. ggl_free frees it. */
bool ggl_row_use_init(row_use *u, const ggl_graph *g);
/* Sets the rows of a batch of n elements with these positions, slots and ends (NULL: the graph has no
 * input "end"). */
void ggl_row_use_set(row_use *u, const ggl_graph *g, const int32_t *pos, const int32_t *slot,
                     const int32_t *end, int64_t n, uint64_t n_pages_set);
/* True if the batch `now` may write a row that the batch `before` can see: that of a position that it has
 * reached, or, in a ring, one that takes the place of an earlier position. */
bool ggl_row_use_meets(const row_use *now, const row_use *before, const ggl_graph *g);

/* If t is the input "slot", "pos", "end" or "page", checks its values for n elements of the batch.
 * Backends compute addresses from them without a check. GGL_USAGE: one is not allowed. */
ggl_status ggl_rows_check(const ggl_graph *g, const ggl_tensor *t, const int32_t *value, int64_t n,
                          ggl_error *err);
/* Gives each slot pages of its own in table[], a value of the input "page"; false: the graph has no
 * such input, or too few pages. */
bool ggl_rows_own_pages(const ggl_graph *g, int32_t *table);

/* Returns how many pages this slot and others like it share. */
int64_t ggl_rows_n_pages(const ggl_graph *g, int64_t slot);
/* True if the slot may have rows in the store. */
bool ggl_rows_has_slot(const ggl_graph *g, const ggl_store *st, int64_t slot);
/* True if slots share the pages of the store. */
bool ggl_rows_share_pages(const ggl_store *st);
/* Returns the slot's row of table[], a value of the input "page"; NULL if the store needs none. */
const int32_t *ggl_rows_table(const ggl_graph *g, const ggl_store *st, const int32_t *table,
                              int slot);
/* Returns how many positions of the store hold positions 0 .. n_pos-1 of a slot; 1 for a state, and 0 for
 * rows if states_only. */
int64_t ggl_rows_n_kept(const ggl_store *st, int64_t n_pos, bool states_only);
/* Returns how many bytes of a slot of the store these are, in whole pages. */
size_t ggl_rows_size(const ggl_store *st, int64_t n_pos, bool states_only);
/* Returns by how many positions a slot may go back so that all rows that are visible then are there. */
int64_t ggl_rows_rollback_limit(const ggl_graph *g);

#endif
