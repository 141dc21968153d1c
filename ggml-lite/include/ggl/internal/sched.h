/* Private calls for the scheduler: sessions cut sequences back and share pages by them, and programs
 * report numbers.
 *
 * Threads: as ggl/sched.h says. */
#ifndef GGL_INTERNAL_SCHED_H
#define GGL_INTERNAL_SCHED_H

#include "ggl/sched.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How ggl_sched_alloc used params.cache. */
typedef enum ggl_cache_use {
    GGL_CACHE_NONE,    /* nothing: params.cache is NULL, or no weight is repacked */
    GGL_CACHE_READ,    /* mapped the file: no weight had to be repacked */
    GGL_CACHE_WRITTEN, /* repacked the weights and wrote the file */
    GGL_CACHE_FAILED   /* could neither use nor write the file */
} ggl_cache_use;
ggl_cache_use ggl_sched_cache_use(const ggl_sched *s);
/* Why the file could not be used or written: a sentence that begins with its path; "" if there is
 * no reason to report. */
const char *ggl_sched_cache_note(const ggl_sched *s);

/* Repacks weights that wait (ggl_sched_params.repack_late), after all batches in flight are done: for
 * about that many seconds, but at least a few megabytes; INFINITY: all. *left (may be NULL) is set to
 * the bytes of weights that still wait. GGL_USAGE: ggl_sched_alloc has not been called; and the
 * errors of ggl_sched_finish. */
GGL_NODISCARD ggl_status ggl_sched_repack_some(ggl_sched *s, double seconds, size_t *left,
                                               ggl_error *err);
/* Returns the bytes of weights that wait to be repacked (ggl_sched_params.repack_late). */
size_t ggl_sched_late_size(const ggl_sched *s);

/* Returns which share of the weights that a run reads from mapped files is in memory, by a sample: 0 to 1; 1, too, if none is mapped, or
 * the system does not say. Experts are not counted, as nobody knows which ones a run reads. Any thread may ask after ggl_sched_alloc, also
 * during a run, which waits for the disk if it is less than 1. */
double ggl_sched_present(const ggl_sched *s);
/* Returns the seconds that the devices have spent on late copies. */
double ggl_sched_late_seconds(const ggl_sched *s);
/* Returns the bytes of weights of which only *kept stay in memory, because they do not all have room. What is missing is
 * read again by each run; but of *chosen bytes of matrices that runs choose, only those. 0: all have room, or the system
 * decides alone what stays. */
size_t ggl_sched_streamed(const ggl_sched *s, size_t *kept, size_t *chosen);

/* Like ggl_sched_run, but computes only the output ggl_sched_params.early, and those that need nothing
 * beyond it. Its bits are the same; those of the other outputs are undefined. GGL_USAGE, too: there is no such output. */
GGL_NODISCARD ggl_status ggl_sched_run_early(ggl_sched *s, int64_t n, const int32_t *row,
                                             int64_t n_rows, ggl_error *err);
/* True if the graph has a stage, which ggl_sched_run_stage runs. */
bool ggl_sched_has_stage(const ggl_sched *s);
/* Runs the stage of the graph (ggl_rows) for n of its rows, which are whole texts: stores what the main rows read. GGL_USAGE:
 * the graph has no stage, or nothing but a stage, which ggl_sched_run computes. */
GGL_NODISCARD ggl_status ggl_sched_run_stage(ggl_sched *s, int64_t n, ggl_error *err);
/* Of a graph with a stage, the texts are in slots of their own. What a slot of main rows keeps, and what is needed of a text
 * after its run, are different stores. */
typedef enum ggl_slot_part {
    GGL_SLOT_ALL,  /* all stores */
    GGL_SLOT_MAIN, /* those of main rows */
    GGL_SLOT_TEXT  /* those of the stage that main rows read */
} ggl_slot_part;
/* As ggl_sched_slot_size, ggl_sched_save_slot and ggl_sched_restore_slot, for these stores. */
size_t ggl_sched_part_size(const ggl_sched *s, ggl_slot_part part, int64_t n_pos, bool states_only);
GGL_NODISCARD ggl_status ggl_sched_save_part(ggl_sched *s, ggl_slot_part part, int slot,
                                             int64_t n_pos, bool states_only, void *dst,
                                             ggl_error *err);
GGL_NODISCARD ggl_status ggl_sched_restore_part(ggl_sched *s, ggl_slot_part part, int slot,
                                                int64_t n_pos, bool states_only, const void *src,
                                                ggl_error *err);
/* Returns the number of batches that may be unfinished, or whose error was not returned yet. */
int ggl_sched_n_unfinished(ggl_sched *s);

/* Returns where the scheduler keeps a batched input, with room for n_batch elements: who makes large rows writes them there, and then
 * gives this address to ggl_sched_set, which copies nothing. NULL: there is no such input, or no memory yet. */
void *ggl_sched_input_place(ggl_sched *s, const char *input);

/* Copies page src to page dst, in all stores whose pages this slot and others like it share. */
GGL_NODISCARD ggl_status ggl_sched_copy_page(ggl_sched *s, int slot, int32_t dst, int32_t src,
                                             ggl_error *err);
/* To cut a sequence back, continue from the earlier position: rows of later positions are ignored.
 * States cannot be cut back; restore a snapshot. With ring stores (attention windows), a sequence
 * can be cut back by at most ggl_sched_rollback_limit positions, counted from the one after the
 * highest ever written to the slot; INT64_MAX: there are no rings. */
bool ggl_sched_has_states(const ggl_sched *s);
int64_t ggl_sched_rollback_limit(const ggl_sched *s);

/* Bytes by kind and backend. */
typedef struct ggl_memory {
    const char *backend;
    size_t weights_mapped;   /* used where they lie */
    size_t weights_copied;   /* uploaded as they are */
    size_t weights_repacked; /* the backend's own layout */
    size_t weights_dropped;  /* originals that are read only to repack them: their pages are dropped
                                if they are mapped */
    size_t stores_rows, stores_states, arena, io;
} ggl_memory;
/* Adds the bytes of m, which has the name of the backend. */
static inline void ggl_memory_add(ggl_memory *sum, const ggl_memory *m) {
    sum->backend = m->backend;
    sum->weights_mapped += m->weights_mapped;
    sum->weights_copied += m->weights_copied;
    sum->weights_repacked += m->weights_repacked;
    sum->weights_dropped += m->weights_dropped;
    sum->stores_rows += m->stores_rows;
    sum->stores_states += m->stores_states;
    sum->arena += m->arena;
    sum->io += m->io;
}
/* Fills in *out for a backend, by index, and returns 1; returns 0 if there is no such backend. */
GGL_INTERNAL_API int ggl_sched_memory(const ggl_sched *s, int backend, ggl_memory *out);

/* Returns the backend that runs a node; NULL if none does: a leaf, a view, an unused node. */
const ggl_backend *ggl_sched_runs_on(const ggl_sched *s, const ggl_tensor *node);
/* Returns how many nodes run on another backend than the wished one, because that refused them. */
size_t ggl_sched_n_fallbacks(const ggl_sched *s);

#ifdef __cplusplus
}
#endif
#endif
