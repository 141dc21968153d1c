/* Private calls about backends: their kinds, numbers of threads, and backends that wrap another one.
 *
 * Threads: as ggl/backends.h says. */
#ifndef GGL_INTERNAL_BACKENDS_H
#define GGL_INTERNAL_BACKENDS_H

#include <stdio.h>

#include "ggl/backends.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ggl_backend_kind_t {
    GGL_BACKEND_HOST,   /* the processor that this program runs on */
    GGL_BACKEND_DEVICE, /* one of several, by number: "vulkan0" */
    GGL_BACKEND_ORACLE  /* accurate but slow: other backends are measured against it */
} ggl_backend_kind_t;
ggl_backend_kind_t ggl_backend_kind(int k);
const char *ggl_backend_text(int k); /* a description; NULL past the end */
/* Return what n_threads 0 stands for, and n_threads_batch 0 beside it: the big cores, and the cores that
 * help with batches, of those that affinity and the control group's quota allow (docs/cpu-backend.md, Threads); 1 to
 * GGL_MAX_THREADS. */
int ggl_backend_default_threads(void);
GGL_INTERNAL_API int ggl_backend_default_threads_batch(void);
/* Returns the number of CPUs that affinity allows, at least 1. CPUs that share a core all count. */
int ggl_backend_allowed_cpus(void);

/* Call this at the start of a program. If mpirun has started the process as one of several, it becomes a rank of the job: as
 * rank 0 it goes on, and may open the devices of the others ("rank1", "rank2:vulkan0"), which end when it ends. As another
 * one it computes for rank 0, and the call returns when the job has ended: *exit_code is then what the program ends with, else
 * -1. note (may be NULL) is told what the user of such a rank may want to know. GGL_UNSUPPORTED: this build has no MPI, or the ranks are of different builds; GGL_DEVICE: rank 0 is gone. */
GGL_NODISCARD ggl_status ggl_ranks_begin(int *exit_code, void (*note)(const char *text),
                                         ggl_error *err);
/* The same for programs whose ranks all run: each returns, *rank and *n_ranks say which it is of how many (0 and 1 without mpirun), and they send
 * each other bytes. Only rank 0 and another one can. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status ggl_ranks_begin_peers(int *rank, int *n_ranks,
                                                                ggl_error *err);
/* Wait until all bytes are sent, or have come. GGL_DEVICE: the rank is lost, or sends another number of bytes. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status ggl_ranks_send(int rank, const void *data, size_t size,
                                                         ggl_error *err);
GGL_INTERNAL_API GGL_NODISCARD ggl_status ggl_ranks_receive(int rank, void *data, size_t size,
                                                            ggl_error *err);
/* True for names of devices of other ranks, such as "rank2" and "rank2:vulkan0", whether there are such or not. */
bool ggl_rank_is_name(const char *name);
/* True if Open MPI's mpirun has started this process, also a single one, or with GGL_RANKS=off. */
bool ggl_ranks_has_launcher(void);
int ggl_ranks_count(void); /* of the job, with this one; 1: there is no job */
/* True if a rank with an open device does not answer any more; err says which, and what to do. */
bool ggl_ranks_are_lost(ggl_error *err);

/* Makes a backend that runs everything on `inner`, with the same results, and writes a timeline of
 * trace events (JSON, for chrome://tracing or ui.perfetto.dev): one track for each backend, with
 * compile, run, the nodes of a run that inner reports to its profile, transfers, and memory. Nodes
 * of an asynchronous backend have a track of their own, as its runs last longer than the calls that
 * start them. The backend keeps the name of inner.
 * Backends that are traced to the same file share it. The file is named PATH.tmp-PID-0 until the
 * last of them ends its timeline, and then gets its name. If a write fails there is no file;
 * ggl_trace_end returns the reason, or, if it is not called, closing the backend prints it to
 * standard error.
 *
 * path NULL: the environment variable GGL_TRACE, else "trace.json". On success *out owns inner; on
 * failure the caller still does. An existing file is replaced. GGL_IO. */
GGL_NODISCARD ggl_status ggl_trace_wrap(ggl_backend **out, ggl_backend *inner, const char *path,
                                        ggl_error *err);
/* Ends the timeline of b; later events are not recorded. GGL_IO: b was the last backend of the
 * file, and the file could not be written. Does nothing if b is not traced, or if called again. */
GGL_NODISCARD ggl_status ggl_trace_end(ggl_backend *b, ggl_error *err);
/* The `profile` to open `inner` with, so that its nodes appear in the timeline. profile_ctx must
 * point to a ggl_backend *, NULL at first, which the caller sets to the backend that ggl_trace_wrap
 * makes. Not needed if ggl_backend_open makes the trace. */
void ggl_trace_node(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                    uint64_t end);

/* A shadow backend runs everything on `inner`, with the same results. In some runs it also computes
 * a few nodes again, one by one, on a trusted backend from the same operands, and compares: for
 * devices and drivers that may be faulty. Runs and nodes are chosen at random from the seed. A
 * checked run uses another plan, in which the chosen values are not fused away, so a fault of fused
 * kernels may not show. Checked runs take longer, and allocate memory. */
typedef struct ggl_shadow_params {
    size_t size; /* sizeof(ggl_shadow_params): ggl/internal/params.h */
    double rate; /* fraction of runs that are checked, up to 1; 0: 1/32 */
    int n_nodes; /* nodes to check in each of these runs, up to 16; 0: one */
    uint64_t seed;
} ggl_shadow_params;

/* The element of a node's value that differs most. */
typedef struct ggl_shadow_fault {
    char node[128], origin[128]; /* "blk.2 q = rope_pair(..)", "llama.arch:30" */
    int64_t run, item, element;  /* runs count from 1; item: of the batch */
    double got, want;            /* inner's number, the trusted one */
    double scale, drift, bound; /* largest |number| of the value; |got - want| / scale; its limit */
} ggl_shadow_fault;

typedef struct ggl_shadow_result {
    /* n_nodes: nodes checked; n_faults: those that exceeded their bounds */
    int64_t n_runs, n_checked_runs, n_nodes, n_faults;
    int64_t n_skipped;             /* nodes that could not be checked */
    char why[256];                 /* the reason for the last of these */
    double largest;                /* largest drift of all */
    ggl_shadow_fault first, worst; /* set if n_faults > 0 */
} ggl_shadow_result;

/* Makes a shadow backend; params NULL: defaults. On success *out owns inner; on failure the caller
 * still does. `trusted` is borrowed until *out is closed. Several shadow backends may share it;
 * nothing else may run on it meanwhile.
 * GGL_USAGE, GGL_NOMEM. */
GGL_NODISCARD ggl_status ggl_shadow_wrap(ggl_backend **out, ggl_backend *inner,
                                         ggl_backend *trusted, const ggl_shadow_params *params,
                                         ggl_error *err);
/* Returns the results so far. b: from ggl_shadow_wrap. */
ggl_shadow_result ggl_shadow_get(const ggl_backend *b);
/* Prints the results so far, with the drift of each operator; returns false if a bound was
 * exceeded. */
bool ggl_shadow_report(const ggl_backend *b, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
