/* Programs: a segment as a flat list of steps with all addresses resolved, for backends that run
 * one node after the other. Calls that the backend does not know are replaced by their bodies, and
 * recurrent ones by a loop over the batch. Views cost no step. Values that only this segment uses
 * get offsets in one arena according to their lifetimes.
 *
 * Threads: a program does not change after it was made; any number may read it at the same time. */
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
    bool repacked; /* the whole repacked copy of a weight starts at offset; only for src[1] of
                      LINEAR. nb[] are the strides of the file's layout */
    size_t offset;
    size_t loop;              /* inside a loop: bytes to add to offset for each turn */
    int64_t ne[GGL_MAX_DIMS]; /* ne[3]: 1 or GGL_N; inside a loop 1 */
    size_t nb[GGL_MAX_DIMS];  /* strides in bytes; nb[0] is the size of an element (or block), as
                                 rows are dense */
} ggl_operand;

typedef enum ggl_step_kind { GGL_STEP_NODE, GGL_STEP_LOOP, GGL_STEP_END } ggl_step_kind;

typedef struct ggl_step {
    ggl_step_kind kind;
    /* Operator, numbers, stores, body and name. RESHAPE: copies the elements of src[0], in order,
     * to dst, which may have another shape. Shapes and types are those of the operands. */
    const ggl_tensor *node;
    ggl_operand dst;
    /* The operands of node->src. A LINEAR with an operand src[3] gathers: src[1] is the whole
     * weight [in, out, n], and matrix src[3][e] is multiplied with vector e. */
    ggl_operand src[GGL_MAX_SRC];
    int n_src;
    int end;  /* LOOP: the index of its END; END: the index of its LOOP */
    int wave; /* consecutive steps of the same wave, if not 0, may run at the same time: none reads
                 or overwrites what another writes */
} ggl_step;

typedef struct ggl_program {
    ggl_step *step;
    int n_step;
    size_t arena_size; /* bytes of GGL_REGION_ARENA, for a batch of n_max */
    int64_t n_max;
} ggl_program;

typedef struct ggl_program_params {
    /* ggl_backend_vtable.refuses; called for CALL nodes. */
    const char *(*refuses)(const ggl_backend *b, const ggl_tensor *node);
    const ggl_backend *backend;
    /* Returns whether the backend can write the node's result over a source of the same shape.
     * NULL: it never can. */
    bool (*in_place)(const ggl_tensor *node);
    ggl_type value_type; /* the type of floats in the arena: f32; f64 for the reference */
} ggl_program_params;

/* Makes the program of a segment, which ggl_program_fini frees. On failure *p is empty. GGL_NOMEM;
 * GGL_LIMIT: a node has too many sources, or a value is too large. */
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

/* Returns which composite of the prelude a CALL is. GGL_COMPOSITE_NONE: it has another name, other
 * numbers of sources or shapes than the prelude's, or sources that are not f32; its body must be
 * run. */
GGL_API ggl_composite ggl_composite_of(const ggl_tensor *call);
/* Returns the state of a recurrent CALL, by whatever name; NULL: it has none, or several. */
GGL_API const ggl_store *ggl_composite_state(const ggl_tensor *call);
/* Returns the operand that tells a step of a recurrent CALL the slot of each element of the batch,
 * i32; region -1 for all other steps. */
GGL_API ggl_operand ggl_step_slot(const ggl_segment *s, const ggl_step *step);

#ifdef __cplusplus
}
#endif
#endif
