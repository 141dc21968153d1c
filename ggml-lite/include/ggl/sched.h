/* The scheduler: chooses a backend for every node, cuts the graph into few segments of one backend
 * each, inserts copies between them, compiles plans once, and replays them. It owns all memory:
 * weights (used in place where the backend can), stores, arenas, and the values that cross
 * segments, which share memory if they are not needed at the same time.
 * ggl_sched_new sizes everything; ggl_sched_alloc allocates it.
 *
 *     ggl_sched *s;
 *     ggl_sched_params p = {.size = sizeof p, .backend = (ggl_backend *[]){cpu}, .n_backends = 1};
 *     if (ggl_sched_new(&s, g, &p, &err) != GGL_OK || ggl_sched_alloc(s, &err) != GGL_OK) ...
 *     ggl_sched_set(s, "x", values, sizeof values, n, &err);
 *     ggl_sched_run(s, n, NULL, 0, &err);
 *     const float *y = ggl_sched_output(s, 0);        // [n][ggl_count]
 *
 * Threads: a scheduler, and the backends it borrows, are used by one thread at a time. If several
 * backends run parts of a batch, the scheduler has a thread for each of them, and calls different
 * backends at the same time, but each by one thread at a time. One more asks the system for mapped
 * weights that are not in memory yet; or two read again and again those of a mapped file that have no room there.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef GGL_SCHED_H
#define GGL_SCHED_H

#include <stdio.h>

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_sched ggl_sched;

/* Host memory that holds weights, such as a mapped file. A backend that can uses it in place. */
typedef struct ggl_host_range {
    const void *data;
    size_t size;
    /* A mapped file whose pages were not written to: the scheduler may drop pages, which the system
     * reads again when they are touched, and, until it is freed, put private memory with the same bytes in their place. */
    bool mapped;
} ggl_host_range;

/* Looks at what nodes read while a graph runs: to collect statistics of it, for example. */
typedef struct ggl_watch {
    /* Called by ggl_sched_new for each node at the top level: true if it is to be watched. */
    bool (*wants)(void *ctx, const ggl_tensor *node);
    /* Called after each run of the node, with the n elements of the batch. operand[k], for ggl_read(node,
     * k), is in host memory, valid during the call: [n] times ggl_count numbers of the operand's type
     * (once, if it is not batched). NULL: a weight, a constant, or absent. All batches reach a node in
     * their order; for nodes on several backends it may be called by different threads, one at a time. */
    void (*see)(void *ctx, const ggl_tensor *node, const void *const *operand, int64_t n);
    void *ctx;
    /* Called by ggl_sched_new before it asks for nodes: those of a graph for which it has asked earlier may be gone. NULL: nothing is called. */
    void (*begin)(void *ctx);
} ggl_watch;

typedef struct ggl_repacked ggl_repacked;

typedef struct ggl_sched_params {
    size_t size;                 /* sizeof(ggl_sched_params) */
    ggl_backend *const *backend; /* borrowed */
    int n_backends;
    /* Returns the index of the backend for a node. weight NULL: for the nodes of `group` (-1: nodes
     * without a group). Else: for the nodes of the group that read this weight; -1: no wish, they
     * go with the group. Nodes that read no weight run where the values of their group that they
     * read are computed, if that is one backend and it has the node. NULL: all nodes run on
     * backend 0. */
    int (*place)(void *ctx, int group, const char *weight);
    void *ctx;
    /* A node that the backend named by place() refuses: true: ggl_sched_new fails with
     * GGL_UNSUPPORTED; false: the node runs on the first backend that can run it. */
    bool strict;
    int64_t n_rows; /* most rows of outputs in one run; 0: n_batch */
    /* Borrowed until the scheduler is freed. A weight outside these ranges is a range by itself. */
    const ggl_host_range *host;
    int n_host;
    /* true: weights are used in the file's layout. false: backends may repack the weights of
     * products (ggl_backend_vtable.repack), which makes products faster but needs memory for the
     * copy. Pages of the original are dropped if they are mapped and only products read the
     * weight. */
    bool no_repack;
    /* true: a backend that can (ggl_backend_vtable.repack_rows) repacks weights only after the first
     * run with outputs, little by little: before each later one for about as long as it takes, so that
     * the first results come soon. No result changes. Without
     * effect if `cache` is set. */
    bool repack_late;
    /* Called by ggl_sched_alloc after each weight that it has uploaded or repacked, with the bytes
     * done and the bytes in all. Returning false stops it with GGL_CANCELLED. May be NULL. */
    bool (*progress)(void *ctx, size_t done, size_t total);
    void *progress_ctx;
    /* Called before each segment, and by some backends between the steps of a plan, in a thread
     * that runs, by one thread at a time; true ends the run with GGL_CANCELLED. Stores may then be
     * half written, so the batch's slots must be cleared or cut back. May be NULL. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    /* Path of a file of repacked weights: ggl_sched_alloc maps it if it was made from these weights
     * for these backends, else it repacks and writes the file. Problems with the file do not make
     * ggl_sched_alloc fail. NULL: no file. Borrowed until ggl_sched_alloc returns. */
    const char *cache;
    const void *cache_of; /* bytes that identify the model, such as the size and time of its file */
    size_t cache_of_size;
    /* The name of an output that a batch may compute without the others (ggl_sched_submit, early);
     * NULL: none. */
    const char *early;
    /* The name of an output of which each element of a batch is wanted, also of batches that have no other rows, but
     * a ticket: ggl_sched_output then returns [n][ggl_count] of it, n the size of the batch. NULL: none. */
    const char *whole;
    /* No run reads what another one has stored: stores share memory where their uses in a run do not overlap. */
    bool forgets;
    /* The words of ggl_sched_print for an element of the batch and for a group, singular. NULL:
     * "element", "group". Borrowed. */
    const char *element_word, *group_word;
    /* NULL: no node is watched. Watched nodes run for the whole batch, and segments end where groups do,
     * so that the values to look at take the memory of one group. No result changes. Borrowed until
     * the scheduler is freed. */
    const ggl_watch *watch;
    /* How many runs with outputs will come in all, if that is known. With repack_late, weights are then repacked only
     * while enough of these runs are left for a copy to save more time than it takes. 0: not known. */
    int64_t n_expected;
    /* One batch is under way at a time, but its segments run on their backends at the same time where they need no
     * value of each other: for graphs whose products are divided among backends. */
    bool side_by_side;
    /* Schedulers with the same table share repacked copies of its weights (ggl/internal/repacked.h), unless they are in a file, `cache`.
     * No result changes. NULL: each makes its own. Borrowed until the scheduler is freed. */
    ggl_repacked *repacked;
} ggl_sched_params;

/* Plans all runs of the graph g, which must be finished and outlive the scheduler. Allocates
 * nothing on backends. On success the caller owns *out; on failure *out is NULL. GGL_USAGE,
 * GGL_UNSUPPORTED (no backend can run a node), GGL_LIMIT, GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_new(ggl_sched **out, ggl_graph *g,
                                               const ggl_sched_params *p, ggl_error *err);
/* Allocates all memory, uploads constants and those weights that cannot be used in place, and
 * repacks weights. Must be called once before the first run. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_alloc(ggl_sched *s, ggl_error *err);
/* Gives up batches in flight (what a backend has begun is waited for), and frees everything but the
 * backends and the graph. NULL is fine. */
GGL_API void ggl_sched_free(ggl_sched *s);

/* Sets an input for the next run. data: n * ggl_count numbers of the input's type, for the first n
 * elements of the batch (n = 1 if the input is not batched); they are copied. size: their bytes, so
 * that data of another type or length is refused and not read past its end. "slot" must be in
 * 0 .. n_slots-1, "pos" in 0 .. n_pos-1 (in a graph without stores: any number from 0 on) and, if slots
 * share pages, in those that a slot may have, and "page" in 0 .. ggl_graph_n_pages-1 (of slots for a stage's rows, and of the others beside them: of their own pages), also for
 * positions that no slot has. An input that is not batched travels to a device only as far as it
 * has changed since the device got it. If there are enough pages,
 * ggl_sched_alloc sets "page" so that each slot has its own ones.
 * GGL_NOT_FOUND: no such input. GGL_USAGE: size, n or a value is wrong, or ggl_sched_alloc has not
 * been called. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_set(ggl_sched *s, const char *input, const void *data,
                                               size_t size, int64_t n, ggl_error *err);

/* Runs a batch of n elements (1 .. n_batch). Computes outputs for the n_rows elements whose indices
 * are in row[], ascending; row NULL: for all. Nodes that only outputs need run for those rows
 * alone. The bits of a row depend neither on the other rows nor on n. Allocates nothing. GGL_USAGE:
 * an argument is out of range or an input is not set; GGL_CANCELLED; GGL_DEVICE. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_run(ggl_sched *s, int64_t n, const int32_t *row,
                                               int64_t n_rows, ggl_error *err);
/* Several batches under way. ggl_sched_submit starts a batch of the inputs that are set, with outputs for
 * n_rows elements (0: none; row NULL: for the first n_rows), and returns when the inputs are taken,
 * maybe long before the batch is done. So the next batch can be on the first backend while this one
 * is on the second. early: compute only the output ggl_sched_params.early, and
 * those that need nothing beyond it, with the same bits. *ticket names the batch for ggl_sched_collect;
 * ticket NULL: the batch is not collected, and n_rows must be 0. As many batches are under way as there are
 * lanes, ggl_sched_n_lanes: one for each backend that runs a part of every batch, at most 16, so with
 * one backend there is one, and the batch is computed before ggl_sched_submit returns. Where all
 * lanes are taken, it waits for a batch without a ticket.
 *
 * Order: a batch is computed as if all batches before it were done. Each backend sees the batches in
 * the order in which they were submitted, so one may read what another one stored.
 *
 * Errors of a run come with its ticket. Those of a batch without a ticket are returned by this call, or
 * by the next call of ggl_sched_submit, ggl_sched_run or ggl_sched_finish or the next one on slots, which
 * then does nothing else.
 * If a batch fails, all later ones fail with the same error, until a call has returned that error.
 * GGL_USAGE: as ggl_sched_run, and if all lanes have tickets that are not collected. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_submit(ggl_sched *s, int64_t n, const int32_t *row,
                                                  int64_t n_rows, bool early, uint64_t *ticket,
                                                  ggl_error *err);
/* Waits until the batch is done and returns its status. The ticket is then no longer valid, and
 * ggl_sched_output returns the batch's outputs. Tickets may be collected in any order. GGL_USAGE: there is
 * no such ticket. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_collect(ggl_sched *s, uint64_t ticket, ggl_error *err);
/* Waits until all batches are done. Those with tickets must still be collected. ggl_sched_free and the
 * calls on slots need no call of this before them. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_finish(ggl_sched *s, ggl_error *err);
/* Returns how many batches may be under way at once. */
GGL_API int ggl_sched_n_lanes(const ggl_sched *s);
/* Returns output k of the batch that was run or collected last, [n_rows][ggl_count] f32 (of one that is not batched
 * [ggl_count]) in host memory, valid until the next run, ggl_sched_submit or ggl_sched_collect; NULL if there is no output
 * k. */
GGL_API const float *ggl_sched_output(const ggl_sched *s, int k);

/* Slots. A slot holds the KV cache and the recurrent states of one sequence. It must be cleared
 * before the first element of a sequence. Copying gives slot dst positions 0 .. n_pos-1 and the
 * states of slot src; a page that both have at the same positions needs no copy. All calls use the
 * pages that the input "page" is set to.
 * GGL_USAGE: no such slot or page, "page" is not set, or ggl_sched_alloc has not been called. */
GGL_API GGL_NODISCARD ggl_status ggl_sched_clear_slot(ggl_sched *s, int slot, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status ggl_sched_copy_slot(ggl_sched *s, int dst, int src, int64_t n_pos,
                                                     ggl_error *err);
/* Saves positions 0 .. n_pos-1 and the states of a slot as bytes, and restores them; the first call
 * returns the number of bytes. states_only: without the rows of the KV cache (a snapshot of the
 * states). Restoring needs the same graph parameters, n_pos and states_only as saving. */
GGL_API size_t ggl_sched_slot_size(const ggl_sched *s, int64_t n_pos, bool states_only);
GGL_API GGL_NODISCARD ggl_status ggl_sched_save_slot(ggl_sched *s, int slot, int64_t n_pos,
                                                     bool states_only, void *dst, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status ggl_sched_restore_slot(ggl_sched *s, int slot, int64_t n_pos,
                                                        bool states_only, const void *src,
                                                        ggl_error *err);

/* Prints the segments (and their nodes if `nodes`), the values that move between backends, the
 * refused nodes with the reasons, and the memory table. */
GGL_API void ggl_sched_print(const ggl_sched *s, FILE *out, bool nodes);

#ifdef __cplusplus
}
#endif
#endif
