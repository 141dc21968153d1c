/* The backends of this build (backends/list.def), opened by name.
 *
 *     ggl_backend *cpu;
 *     if (ggl_backend_open(&cpu, "cpu", NULL, &err) != GGL_OK) ...
 *
 * Threads: several may open and close backends at the same time. Different open backends may run at
 * the same time; one backend runs for one thread at a time. */
#ifndef GGL_BACKENDS_H
#define GGL_BACKENDS_H

#include <stdio.h>

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called for each step of a run, in the order of the steps: the node, the size of the batch,
 * whether the step only prepared operands of the node (quantized its columns, made a table of
 * cosines), and when it began and ended, in ns of CLOCK_MONOTONIC. The CPU calls it after each
 * step. A backend whose run only starts the work (ggl_backend.async) calls it in a later function,
 * at the latest in `wait` or `plan_free`, as soon as it knows that the run has ended; the times are
 * those of the device's clock, placed between the run's start and that moment. It is called on the
 * thread that called the function; the backends of one scheduler call it at the same time. */
typedef void ggl_profile_fn(void *ctx, const ggl_tensor *node, int64_t n, bool prepares,
                            uint64_t begin, uint64_t end);

#define GGL_MAX_THREADS 512

typedef struct ggl_backend_params {
    size_t size;         /* sizeof(ggl_backend_params): ggl/params.h */
    int n_threads;       /* up to GGL_MAX_THREADS; 0: one for each physical core that we may use */
    int n_threads_batch; /* for batches larger than one; 0: n_threads */
    /* Features not to use, such as instruction sets, separated by commas ("avx512,avx2"). "all":
     * use the portable code. NULL: use everything. The environment variable GGL_CPU_MASK adds to
     * it. All backends share the mask; GGL_USAGE: none of them knows a name in it. The reference
     * knows "f64": without it, values between operators are f32. */
    const char *mask;
    /* cpu: round f16 weights of products to bf16 (to nearest even) when they are repacked (so not
     * with ggl_sched_params.no_repack). Makes large batches faster on machines that multiply bf16. */
    bool f16_as_bf16;
    int device;              /* set by ggl_backend_open: the number at the end of the name */
    ggl_profile_fn *profile; /* NULL: steps are not timed. The reference never calls it */
    void *profile_ctx;
    const char *trace; /* trace the backend to this file, as "trace:NAME" does; NULL: no trace */
} ggl_backend_params;

/* Opens a backend. name: one of the list, with the number of a device: "cpu", "vulkan0", "vulkan1";
 * without a number the first device. For backends without devices the number only tells instances
 * apart ("cpu1"). params may be NULL. Several backends of one name may be open at the same time. On
 * failure *out is NULL. GGL_NOT_FOUND: the message lists the names, or the devices.
 *
 * "trace:NAME" opens NAME and writes a timeline (see below). A name that contains '/' or ends in
 * ".so" is the path of a shared object with a backend (ggl_plugin in ggl/backend.h), which stays
 * loaded until the backend is closed. */
GGL_API GGL_NODISCARD ggl_status ggl_backend_open(ggl_backend **out, const char *name,
                                                  const ggl_backend_params *params, ggl_error *err);
GGL_API void ggl_backend_close(ggl_backend *b); /* NULL is fine */
/* Return the name of backend k = 0, 1, .. of the list, and a description; NULL past the end. */
GGL_API const char *ggl_backend_name(int k);
GGL_API const char *ggl_backend_text(int k);
typedef enum ggl_backend_kind_t {
    GGL_BACKEND_HOST,   /* the processor that this program runs on */
    GGL_BACKEND_DEVICE, /* one of several, by number: "vulkan0" */
    GGL_BACKEND_ORACLE  /* accurate but slow: other backends are measured against it */
} ggl_backend_kind_t;
GGL_API ggl_backend_kind_t ggl_backend_kind(int k);
/* Returns what n_threads 0 stands for: the physical cores that affinity and the control group's quota
 * allow, at least 1. */
GGL_API int ggl_backend_default_threads(void);

/* --- tracing ---------------------------------------------------------------------------------- */

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
GGL_API GGL_NODISCARD ggl_status ggl_trace_wrap(ggl_backend **out, ggl_backend *inner,
                                                const char *path, ggl_error *err);
/* Ends the timeline of b; later events are not recorded. GGL_IO: b was the last backend of the
 * file, and the file could not be written. Does nothing if b is not traced, or if called again. */
GGL_API GGL_NODISCARD ggl_status ggl_trace_end(ggl_backend *b, ggl_error *err);
/* The `profile` to open `inner` with, so that its nodes appear in the timeline. profile_ctx must
 * point to a ggl_backend *, NULL at first, which the caller sets to the backend that ggl_trace_wrap
 * makes. Not needed if ggl_backend_open makes the trace. */
GGL_API void ggl_trace_node(void *ctx, const ggl_tensor *node, int64_t n, bool prepares,
                            uint64_t begin, uint64_t end);

/* --- shadowing -------------------------------------------------------------------------------- */

/* A shadow backend runs everything on `inner`, with the same results. In some runs it also computes
 * a few nodes again, one by one, on a trusted backend from the same operands, and compares: for
 * devices and drivers that may be faulty. Runs and nodes are chosen at random from the seed. A
 * checked run uses another plan, in which the chosen values are not fused away, so a fault of fused
 * kernels may not show. Checked runs take longer, and allocate memory. */
typedef struct ggl_shadow_params {
    size_t size; /* sizeof(ggl_shadow_params): ggl/params.h */
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
GGL_API GGL_NODISCARD ggl_status ggl_shadow_wrap(ggl_backend **out, ggl_backend *inner,
                                                 ggl_backend *trusted,
                                                 const ggl_shadow_params *params, ggl_error *err);
/* Returns the results so far. b: from ggl_shadow_wrap. */
GGL_API ggl_shadow_result ggl_shadow_get(const ggl_backend *b);
/* Prints the results so far, with the drift of each operator; returns false if a bound was
 * exceeded. */
GGL_API bool ggl_shadow_report(const ggl_backend *b, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
