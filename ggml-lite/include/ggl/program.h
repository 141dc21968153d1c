/* For backends that run one node after the other: turns a segment into a flat list of steps with
 * all addresses resolved. Calls that the backend does not know are replaced by their bodies,
 * recurrent ones by a loop over the batch; views cost no step; private values get offsets in one
 * arena by their lifetimes. */
#ifndef GGL_PROGRAM_H
#define GGL_PROGRAM_H

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGL_MAX_SRC 8

typedef struct ggl_operand {
    ggl_type type;
    int region;    /* -1: the operand is absent */
    bool repacked; /* a weight of LINEAR as the backend's repack() has laid it out, all of it, from
                      offset on. nb[] are those of the file's layout */
    size_t offset;
    size_t loop;              /* inside a loop: bytes to add for each turn */
    int64_t ne[GGL_MAX_DIMS]; /* ne[3]: 1 or GGL_N. Inside a loop 1 */
    size_t nb[GGL_MAX_DIMS];  /* bytes from one to the next; nb[0] is the element's (or block's)
                                 size: rows are dense */
} ggl_operand;

typedef enum ggl_step_kind { GGL_STEP_NODE, GGL_STEP_LOOP, GGL_STEP_END } ggl_step_kind;

typedef struct ggl_step {
    ggl_step_kind kind;
    const ggl_tensor
        *node; /* the operator, its numbers, stores, body, name. A RESHAPE is a copy: the elements
                * of src[0], in order, into dst, whose shape may be another */
    ggl_operand dst;
    /* As node->src. Of LINEAR, src[3] is the index operand if src[1] is to be picked from: then
     * src[1] is the whole weight [in, out, n] and matrix src[3][e] serves the e-th. */
    ggl_operand src[GGL_MAX_SRC];
    int n_src;
    int end;  /* LOOP: the index of its END. END: of its LOOP */
    int wave; /* steps that follow each other and have the same wave, not 0, may run side by side:
                 none reads or overwrites what another writes */
} ggl_step;

typedef struct ggl_program {
    ggl_step *step;
    int n_step;
    size_t arena_size; /* for n_max */
    int64_t n_max;
} ggl_program;

typedef struct ggl_program_params {
    /* The backend's own answer; asked for CALL nodes. */
    const char *(*refuses)(const ggl_backend *b, const ggl_tensor *node);
    const ggl_backend *backend;
    /* Whether the backend can write the node's result over a source of the same shape; NULL: of no
     * node. */
    bool (*in_place)(const ggl_tensor *node);
    ggl_type value_type; /* of private float values: f32, or f64 for the reference */
} ggl_program_params;

GGL_API GGL_NODISCARD ggl_status ggl_program_build(ggl_program *p, const ggl_segment *s,
                                                   const ggl_program_params *params,
                                                   ggl_error *err);
GGL_API void ggl_program_fini(ggl_program *p);

/* --- composites ------------------------------------------------------------------------------- */

typedef enum ggl_composite {
    GGL_COMPOSITE_NONE,
#define COMPOSITE(ID, name, n_src, n_num, recurrent, fits) GGL_COMPOSITE_##ID,
#include "ggl/composites.def"
#undef COMPOSITE
    GGL_COMPOSITE_COUNT
} ggl_composite;

/* Which composite a CALL is, with the name, the sources and the shapes that the prelude gives it.
 * GGL_COMPOSITE_NONE: it has none of the names, another form, or sources that are not f32, and runs
 * as its body says. */
GGL_API ggl_composite ggl_composite_of(const ggl_tensor *call);
/* The only state of a recurrent composite; NULL: it has none or several. */
GGL_API const ggl_store *ggl_composite_state(const ggl_tensor *call);

#ifdef __cplusplus
}
#endif
#endif
