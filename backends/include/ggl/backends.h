/* The backends of this build, found through one list (backends/list.def).
 *
 *     ggl_backend *cpu;
 *     if (ggl_backend_open(&cpu, "cpu", NULL, &err) != GGL_OK) ...
 */
#ifndef GGL_BACKENDS_H
#define GGL_BACKENDS_H

#include <stdio.h>

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Told after each step of a run, on the thread that called it: the node, how many of the batch,
 * whether the step only prepared what the node reads (rounded its columns, made a table of
 * cosines), and how long it took. */
typedef void ggl_profile_fn(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, double ns);

#define GGL_MAX_THREADS 512

typedef struct ggl_backend_params {
    int n_threads; /* up to GGL_MAX_THREADS; 0: as many as physical cores this process may use */
    int n_threads_batch; /* for runs of more than one of the batch; 0: n_threads */
    /* instruction sets not to use, separated by commas ("avx512,avx2"); NULL: none; "all": the
     * portable code. The environment variable GGL_CPU_MASK adds to it. All backends share it; a
     * name that none of them knows is GGL_USAGE. The reference knows "f64": its values between
     * operators are f32 then */
    const char *mask;
    /* cpu: f16 weights of products are rounded to bf16 (to nearest even), in the copy that is laid
     * out at load (ggl_backend_vtable.repack; so not where that is declined). Prompts are faster
     * where the machine multiplies bf16. false: f16 is exact. */
    bool f16_as_bf16;
    int device;              /* set by ggl_backend_open: the number behind the name */
    ggl_profile_fn *profile; /* NULL: nothing is measured. The reference does not tell */
    void *profile_ctx;
    /* the backend is traced to this file, as with a name "trace:NAME"; NULL: not */
    const char *trace;
} ggl_backend_params;

/* name: one of the list, and which of its devices: "cpu", "vulkan0", "vulkan1"; without a number the
 * first. Those that have no devices of their own, as "cpu1", are so many instances. params may be
 * NULL. Several of one name may be open at once. GGL_NOT_FOUND lists the names, or the devices.
 *
 * "trace:NAME" runs on NAME and writes a timeline (see below). A name with a '/' in it, or that ends
 * in ".so", is the path of a shared object with a backend in it (ggl_plugin in ggl/backend.h); it
 * stays loaded until the backend is closed. */
GGL_API GGL_NODISCARD ggl_status ggl_backend_open(ggl_backend **out, const char *name,
                                                  const ggl_backend_params *params, ggl_error *err);
GGL_API void ggl_backend_close(ggl_backend *b); /* NULL is fine */
/* The k-th backend's name and what it is, for k = 0, 1, ..; NULL past the end. */
GGL_API const char *ggl_backend_name(int k);
GGL_API const char *ggl_backend_text(int k);
typedef enum ggl_backend_kind_t {
    GGL_BACKEND_HOST,   /* the processor that this program runs on */
    GGL_BACKEND_DEVICE, /* one of several, by number: "vulkan0" */
    GGL_BACKEND_ORACLE  /* right rather than fast */
} ggl_backend_kind_t;
GGL_API ggl_backend_kind_t ggl_backend_kind(int k);

/* --- tracing ---------------------------------------------------------------------------------- */

/* A backend that runs on `inner` and writes what happens as trace events (JSON, which
 * chrome://tracing and ui.perfetto.dev show): a track for each instance, on it compile, run, and
 * within a run each node that the inner backend tells, moves of bytes, memory. Backends that are
 * traced to the same file share it. It is PATH.tmp-PID-0 until the last of them ends; then it gets
 * its name. If writing failed there is no file, and ggl_trace_end returns why; without that call,
 * closing prints it on standard error. Results are the inner backend's.
 *
 * path NULL: the environment variable GGL_TRACE, or "trace.json". *out owns inner; on failure the
 * caller still does. An existing file is replaced. GGL_IO. */
GGL_API GGL_NODISCARD ggl_status ggl_trace_wrap(ggl_backend **out, ggl_backend *inner,
                                                const char *path, ggl_error *err);
/* Ends the timeline of b: what it does afterwards is not recorded. GGL_IO: this was the last of its
 * file, which could not be written. Does nothing if b is not traced, or at a second call. */
GGL_API GGL_NODISCARD ggl_status ggl_trace_end(ggl_backend *b, ggl_error *err);
/* Gives ggl_trace_wrap the nodes: the `profile` that inner is opened with, whose profile_ctx is a
 * ggl_backend **, of what ggl_trace_wrap makes later, NULL until then. Backends that
 * ggl_backend_open traces need none. */
GGL_API void ggl_trace_node(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, double ns);

/* --- doubting --------------------------------------------------------------------------------- */

/* A backend that runs on `inner` and, in some of the runs, computes a node or a few once more, alone,
 * from the same operands, on a backend that is trusted: for devices and drivers that are not. Which
 * is left to chance, the same with each start of the same seed. In such a run the plan is another
 * one, in which these values stay where they can be read; so a fault that only shows with everything
 * fused may hide. Results are those of inner. Checked runs take longer, and allocate. */
typedef struct ggl_shadow_params {
    double rate; /* of runs that are looked at, up to 1; 0: a 32nd */
    int n_nodes; /* of each such run, up to 16; 0: one */
    uint64_t seed;
} ggl_shadow_params;

typedef struct ggl_shadow_fault {
    char node[128], origin[128]; /* "blk.2 q = rope_pair(..)", "llama.arch:30" */
    int64_t run, token, element; /* the element of it that is off most; runs count from 1 */
    double got, want;            /* inner, trusted */
    double scale, drift, bound;  /* the largest of the value; |got - want| / scale; its limit */
} ggl_shadow_fault;

typedef struct ggl_shadow_result {
    int64_t n_runs, n_checked_runs, n_nodes, n_faults; /* nodes checked, and beyond their bounds */
    int64_t n_skipped;                                 /* nodes that could not be checked */
    char why[256];                                     /* the last of them */
    double largest;                                    /* drift */
    ggl_shadow_fault first, worst;                     /* if n_faults */
} ggl_shadow_result;

/* params NULL: defaults. *out owns inner; on failure the caller still does. `trusted` is borrowed and
 * outlives *out; nothing else may run on it meanwhile from another thread. GGL_USAGE, GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status ggl_shadow_wrap(ggl_backend **out, ggl_backend *inner,
                                                 ggl_backend *trusted,
                                                 const ggl_shadow_params *params, ggl_error *err);
/* So far. b is what ggl_shadow_wrap made. */
GGL_API ggl_shadow_result ggl_shadow_get(const ggl_backend *b);
/* The same, and drift by operator, for people; false: a bound was passed. */
GGL_API bool ggl_shadow_report(const ggl_backend *b, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
