/* The scheduler: puts every node on a backend, cuts the graph into segments, inserts copies at the
 * borders, keeps the compiled plans, and replays them. It owns the memory: weights (imported in
 * place where the backend can), stores, values that cross borders, arenas. Everything is sized by
 * ggl_sched_new before ggl_sched_alloc takes it.
 *
 *     ggl_sched *s;
 *     ggl_sched_params p = {.backend = (ggl_backend *[]){cpu}, .n_backends = 1};
 *     if (ggl_sched_new(&s, g, &p, &err) != GGL_OK || ggl_sched_alloc(s, &err) != GGL_OK) ...
 *     ggl_sched_set(s, "x", values, n);
 *     ggl_sched_run(s, n, NULL, 0, &err);
 *     const float *y = ggl_sched_output(s, 0);        // [n][ggl_count]
 */
#ifndef GGL_SCHED_H
#define GGL_SCHED_H

#include <stdio.h>

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_sched ggl_sched;

/* Host memory that holds weights, such as a mapped file: imported as a whole where the backend can,
 * and used in place. */
typedef struct ggl_host_range {
    const void *data;
    size_t size;
    bool mapped; /* a file's pages, mapped and not written to: they may be given back to the system,
                    which reads them again when they are wanted */
} ggl_host_range;

typedef struct ggl_sched_params {
    ggl_backend *const *backend; /* borrowed */
    int n_backends;
    /* Which backend (index) runs a group (-1: what has none). With the name of a weight: which runs
     * the nodes of the group that read it; -1: no wish, as the group. Nodes without weights follow
     * the values that they read, where those of their group agree. NULL: all on backend 0. */
    int (*place)(void *ctx, int group, const char *weight);
    void *ctx;
    /* What a backend refuses runs on the first that has it. strict: it is an error instead. */
    bool strict;
    int64_t n_rows; /* most rows of outputs in one run; 0: n_batch */
    const ggl_host_range
        *host; /* borrowed until the scheduler is freed; weights outside of them are a range each */
    int n_host;
    /* Backends may lay out the weights of products anew (ggl_backend_vtable.repack): faster, but a
     * second copy, while the first is given back where nobody else reads it and it is mapped. */
    bool no_repack; /* all weights are used as they are */
    /* Called in ggl_sched_alloc, after each weight that was uploaded or repacked: bytes done,
     * and of all. false: stop, GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *ctx, size_t done, size_t total);
    void *progress_ctx;
    /* Asked between segments, and by backends that can between the steps of a plan: true ends the run
     * with GGL_CANCELLED. What it has kept by then is lost or half written, so slots of the batch
     * have to be cleared or cut. Called from the thread that runs. NULL: none. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    /* A file to keep what was laid out: if it has that of these very weights it is mapped instead,
     * else it is written. NULL: none. It never makes ggl_sched_alloc fail; see
     * ggl_sched_cache_note. */
    const char *cache;    /* borrowed until ggl_sched_alloc returns */
    const void *cache_of; /* bytes that tell this model from any other, and from other versions */
    size_t cache_of_size;
} ggl_sched_params;

GGL_API GGL_NODISCARD ggl_status ggl_sched_new(ggl_sched **out, ggl_graph *g,
                                               const ggl_sched_params *p, ggl_error *err);
/* Takes all memory, uploads what is not used in place, lays out anew what is to be. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_alloc(ggl_sched *s, ggl_error *err);
GGL_API void ggl_sched_free(ggl_sched *s);
/* How ggl_sched_alloc went with params.cache. */
typedef enum ggl_cache_use {
    GGL_CACHE_NONE, /* no file was asked for, or nothing is repacked */
    GGL_CACHE_READ, /* mapped: nothing had to be laid out */
    GGL_CACHE_WRITTEN,
    GGL_CACHE_FAILED /* could not be written */
} ggl_cache_use;
GGL_API ggl_cache_use ggl_sched_cache_use(const ggl_sched *s);
/* Why there is something to tell: a sentence, "" if there is nothing. */
GGL_API const char *ggl_sched_cache_note(const ggl_sched *s);

/* The values of an input for the next run: n of the batch, or 1 if it is not batched; copied: data
 * has n * ggl_count numbers of the input's type. Of the inputs that caches, states and rope are
 * supplied with, "slot" is 0 .. n_slots-1, and "pos" is 0 .. n_pos-1 (if anything is kept; else any
 * number from 0 on). GGL_NOT_FOUND: no such input. GGL_USAGE: n or a value is out of range, or
 * ggl_sched_alloc has not been called. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_set(ggl_sched *s, const char *input, const void *data,
                                               int64_t n, ggl_error *err);

/* Runs n (1 .. n_batch) of the batch. Outputs are computed only for the n_rows of them whose
 * indices row[] has, ascending; row NULL: for all. What only outputs need is run for those alone;
 * the bits of a row do not depend on the others. Allocates nothing. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_run(ggl_sched *s, int64_t n, const int32_t *row,
                                               int64_t n_rows, ggl_error *err);
/* The same without outputs, and it may return while the batch is under way: where there are several
 * backends, the next one (after ggl_sched_set of its inputs) follows it, so that all have work.
 * *n_behind (may be NULL): how many batches may not be done yet. ggl_sched_run, ggl_sched_finish and
 * what touches slots end them first. After an error those under way are lost. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_push(ggl_sched *s, int64_t n, int *n_behind,
                                                ggl_error *err);
GGL_API GGL_NODISCARD ggl_status ggl_sched_finish(ggl_sched *s, ggl_error *err);
/* Output k of the last run, [n_rows][ggl_count] f32 in host memory; valid until the next run. */
GGL_API const float *ggl_sched_output(const ggl_sched *s, int k);

/* Slots: what a sequence keeps. Cleared before its first token, copied to another, saved and
 * restored. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_clear_slot(ggl_sched *s, int slot, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status ggl_sched_copy_slot(ggl_sched *s, int dst, int src,
                                                     ggl_error *err);
/* What a slot keeps of positions 0..n_pos-1, as bytes: size, save, restore. states_only: without
 * the rows (a snapshot). */
GGL_API size_t ggl_sched_slot_size(const ggl_sched *s, int64_t n_pos, bool states_only);
GGL_API GGL_NODISCARD ggl_status ggl_sched_save_slot(ggl_sched *s, int slot, int64_t n_pos,
                                                     bool states_only, void *dst, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status ggl_sched_restore_slot(ggl_sched *s, int slot, int64_t n_pos,
                                                        bool states_only, const void *src,
                                                        ggl_error *err);
/* Cutting a sequence back to an earlier position needs nothing but going on from there: later rows
 * are not seen. States cannot be cut back (restore a snapshot). Rings allow at most
 * ggl_sched_rollback_limit positions, counted from one after the highest that was ever written to the
 * slot (INT64_MAX: there are no rings). */
GGL_API bool ggl_sched_has_states(const ggl_sched *s);
GGL_API int64_t ggl_sched_rollback_limit(const ggl_sched *s);

/* Bytes by kind and backend. */
typedef struct ggl_memory {
    const char *backend;
    size_t weights_mapped;   /* used where they lie */
    size_t weights_copied;   /* uploaded as they are */
    size_t weights_repacked; /* the backend's own layout */
    size_t weights_dropped;  /* of the host's, read once to be repacked: given back, if their
                                range is mapped */
    size_t stores_rows, stores_states, arena, io;
} ggl_memory;
GGL_API int ggl_sched_memory(const ggl_sched *s, int backend,
                             ggl_memory *out); /* 0: no such backend */

/* How many nodes run elsewhere than they were placed, as the backend there refused them. */
GGL_API size_t ggl_sched_n_fallbacks(const ggl_sched *s);
/* Prints the segments (with their nodes), what moves, what was refused, and the memory table. */
GGL_API void ggl_sched_print(const ggl_sched *s, FILE *out, bool nodes);

#ifdef __cplusplus
}
#endif
#endif
