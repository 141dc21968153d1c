/* Decides where a model runs: on which devices, how many layers on each, and single weights elsewhere.
 * llm_open and the tools choose by the same texts, such as "vulkan0=20,cpu=12", which are read here.
 *
 *     const llm_placement_choice choice = {.names = names, .devices = "vulkan0"};
 *     llm_placement *p;
 *     ggl_status st = llm_placement_new(&p, &choice, NULL, &err);
 *     if (st == GGL_OK)
 *         st = llm_placement_session(p, &session, model, &session_params, &err);
 *     ..
 *     llm_session_free(session);
 *     llm_placement_close(p, &err);          // after the session, and after a failure */
#ifndef LIBRARY_PLACEMENT_H
#define LIBRARY_PLACEMENT_H

#include "ggl/backends.h"
#include "ggl/internal/sched.h"
#include "llm/internal/session.h"
#include "place_rules.h"

/* How messages name what was chosen: "--device" in a tool, "device" in a call of llm/llm.h. What the caller
 * does not offer is NULL. */
typedef struct llm_placement_names {
    const char *device, *split, *shares, *n_gpu_layers, *fit, *shadow;
    const char *cache_types; /* of keys and values */
    const char *list;        /* what prints all devices */
    const char *context;     /* the number of tokens; NULL: messages give no advice about it */
} llm_placement_names;

/* All members 0 but names: everything runs on the CPU. The texts, which are borrowed, are read by
 * llm_placement_new, llm_placement_session and llm_placement_advice. */
typedef struct llm_placement_choice {
    llm_placement_names names;
    /* "vulkan0,cpu"; "none": the CPU alone; NULL: those of the other members, else the CPU */
    const char *devices;
    const char *split;  /* "vulkan0=20,cpu=12", or "auto" */
    const char *shares; /* "3,1": proportions of the devices' layers */
    int64_t n_gpu_layers;
    bool n_gpu_layers_given, fit, strict;
    place_rule_options rules;
    const char *trace;  /* a file */
    const char *shadow; /* NULL: off; "": the default rate; "0.5" */
    uint64_t shadow_seed;
    /* Called with facts that a user may want to know: `note` that layers run elsewhere than asked,
     * `measured` what "auto" has found out about a device. NULL: not called. */
    void (*note)(void *ctx, const char *text);
    void (*measured)(void *ctx, const char *text);
    void *ctx;
} llm_placement_choice;

typedef struct llm_placement llm_placement;

/* Opens the backends. *out must be closed even after an error. params may be NULL. GGL_USAGE, GGL_NOT_FOUND
 * (no backend has that name), GGL_DEVICE, GGL_NOMEM. */
ggl_status llm_placement_new(llm_placement **out, const llm_placement_choice *choice,
                             const ggl_backend_params *params, ggl_error *err);
/* Closes the backends; call it after the session is freed. GGL_IO: the timeline of `trace` could not be
 * written. p may be NULL. */
ggl_status llm_placement_close(llm_placement *p, ggl_error *err);

/* Makes a session with this placement (see llm_session_new). */
ggl_status llm_placement_session(llm_placement *p, llm_session **out, const llm_model *m,
                                 llm_session_params *sp, ggl_error *err);
/* Sets the members of sp for backends to those of the placement. */
void llm_placement_lend(llm_placement *p, llm_session_params *sp);
/* Leaves memory of backend k free for something beside the sessions, such as an eye: *m, of which nothing is reserved at first. llm_placement_session reserves it for
 * stages of the model that run before those of the session. */
void llm_placement_reserve(llm_placement *p, int k, const ggl_memory *m);
const ggl_memory *llm_placement_reserved(const llm_placement *p, int k);
/* The bytes of that without the weights in mapped files, which the system can drop and read again. */
GGL_INTERNAL_API double llm_placement_taken(const ggl_memory *m);
/* Writes advice after llm_session_alloc has failed for lack of memory to buf, and returns buf: how many
 * layers would fit, if that can be found out, else that a smaller context would do. After other failures
 * it is "". */
const char *llm_placement_advice(llm_placement *p, const llm_model *m, llm_session_params *sp,
                                 ggl_status why, char *buf, size_t size);

/* True if the choice names no backend, so that everything runs on the CPU. */
bool llm_placement_is_cpu_only(const llm_placement *p);
/* True if the choice says how many layers each backend gets. */
bool llm_placement_counts_layers(const llm_placement *p);
/* Returns the option of a rule that had no effect on the last session, because the model has no experts;
 * NULL if none. */
const char *llm_placement_unused(const llm_placement *p);
/* Returns the parameters with which the backends were opened. */
const ggl_backend_params *llm_placement_params(const llm_placement *p);

GGL_INTERNAL_API int llm_placement_n_backends(const llm_placement *p);
/* Returns the k-th, in the order of a session's backends. */
ggl_backend *llm_placement_backend(const llm_placement *p, int k);
/* True if the backend computes in the memory of the CPU. */
bool llm_placement_is_host(const ggl_backend *b);
/* Returns all of them, [llm_placement_n_backends]; borrowed. */
ggl_backend *const *llm_placement_backends(const llm_placement *p);
/* Prints the findings of `shadow`, if it was chosen. Returns false if an error was beyond its bound. */
bool llm_placement_report(const llm_placement *p, FILE *out);
/* Returns the number of layers that are not on the CPU, of a session made with this placement. */
int64_t llm_placement_n_device_layers(const llm_placement *p, const llm_session *s);
/* Describes the last session's placement: "vulkan0=20,cpu=12", or only the backend's name if the choice does
 * not count layers. Valid until the next session. */
const char *llm_placement_text(const llm_placement *p);

#endif
