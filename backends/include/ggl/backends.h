/* The backends of this build (backends/list.def), opened by name.
 *
 *     ggl_backend *cpu;
 *     if (ggl_backend_open(&cpu, "cpu", NULL, &err) != GGL_OK) ...
 *
 * Threads: several may open and close backends at the same time. Different open backends may run at
 * the same time; one backend runs for one thread at a time.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef GGL_BACKENDS_H
#define GGL_BACKENDS_H

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called for each step of a run, in the order of the steps: the node, the size of the batch,
 * whether the step only prepared operands of the node (quantized its columns, made a table of
 * cosines), and when it began and ended, in ns of ggl_os_clock(). The CPU calls it after each
 * step. A backend whose run only starts the work (ggl_backend.async) calls it in a later function,
 * at the latest in `wait` or `plan_free`, as soon as it knows that the run has ended; the times are
 * those of the device's clock, placed between the run's start and that moment. It is called on the
 * thread that called the function; the backends of one scheduler call it at the same time. */
typedef void ggl_profile_fn(void *ctx, const ggl_tensor *node, int64_t n, bool prepares,
                            uint64_t begin, uint64_t end);

#define GGL_MAX_THREADS 512

typedef struct ggl_backend_params {
    size_t size; /* sizeof(ggl_backend_params) */
    int n_threads; /* up to GGL_MAX_THREADS; 0: one for each physical core that we may use; with big and
                      little cores, for each big one */
    int n_threads_batch; /* for batches larger than one; 0: n_threads, or, if that is 0, one for each
                            core that is not much slower than the fastest */
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
 * "trace:NAME" opens NAME and writes a timeline of trace events (JSON, for chrome://tracing or
 * ui.perfetto.dev) to the file that the environment variable GGL_TRACE names, or "trace.json". A name that contains '/' or ends in
 * ".so" (Windows: '\', ".dll"; macOS: ".dylib", too) is the path of a shared object with a backend (ggl_plugin in ggl/backend.h), which stays
 * loaded until the backend is closed. */
GGL_API GGL_NODISCARD ggl_status ggl_backend_open(ggl_backend **out, const char *name,
                                                  const ggl_backend_params *params, ggl_error *err);
GGL_API void ggl_backend_close(ggl_backend *b); /* NULL is fine */
/* Returns the name of backend k = 0, 1, .. of the list; NULL past the end. */
GGL_API const char *ggl_backend_name(int k);

#ifdef __cplusplus
}
#endif
#endif
