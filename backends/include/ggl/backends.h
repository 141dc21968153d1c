/* The backends of this build, found through one list (backends/list.def).
 *
 *     ggl_backend *cpu;
 *     if (ggl_backend_open(&cpu, "cpu", NULL, &err) != GGL_OK) ...
 */
#ifndef GGL_BACKENDS_H
#define GGL_BACKENDS_H

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Told after each step of a run, on the thread that called it: the node, how many of the batch,
 * whether the step only prepared what the node reads (rounded its columns, made a table of
 * cosines), and how long it took. */
typedef void ggl_profile_fn(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, double ns);

typedef struct ggl_backend_params {
    int n_threads;       /* 0: as many as physical cores this process may use */
    int n_threads_batch; /* for runs of more than one of the batch; 0: n_threads */
    const char
        *mask; /* instruction sets not to use, separated by commas ("avx512,avx2"); NULL: none. Also
                * the environment variable GGL_CPU_MASK. "all": the portable code */
    /* cpu: f16 weights of products are rounded to bf16 (to nearest even), in the copy that is laid
     * out at load (ggl_backend_vtable.repack; so not where that is declined). Prompts are faster
     * where the machine multiplies bf16. false: f16 is exact. */
    bool f16_as_bf16;
    int device; /* set by ggl_backend_open: the number behind the name */
    ggl_profile_fn *profile; /* NULL: nothing is measured. The reference does not tell */
    void *profile_ctx;
    const char *trace; /* the backend is traced to this file, as with a name "trace:NAME"; NULL: not */
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
 * traced to the same file share it; the last that is closed completes it, and if it could not be
 * written, that is said on standard error. Results are the inner backend's.
 *
 * path NULL: the environment variable GGL_TRACE, or "trace.json". *out owns inner; on failure the
 * caller still does. An existing file is replaced. GGL_IO. */
GGL_API GGL_NODISCARD ggl_status ggl_trace_wrap(ggl_backend **out, ggl_backend *inner,
                                                const char *path, ggl_error *err);
/* Gives ggl_trace_wrap the nodes: the `profile` that inner is opened with, whose profile_ctx is a
 * ggl_backend **, of what ggl_trace_wrap makes later, NULL until then. Backends that
 * ggl_backend_open traces need none. */
GGL_API void ggl_trace_node(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, double ns);

#ifdef __cplusplus
}
#endif
#endif
