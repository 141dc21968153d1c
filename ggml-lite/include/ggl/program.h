/* Programs: a segment as a flat list of steps with all addresses resolved, for backends that run
 * one node after the other. Calls that the backend does not know are replaced by their bodies, and
 * recurrent ones by a loop over the batch. Views cost no step. Values that only this segment uses
 * get offsets in one arena according to their lifetimes.
 *
 * Threads: a program does not change after it was made; any number may read it at the same time.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef GGL_PROGRAM_H
#define GGL_PROGRAM_H

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGL_MAX_SRC   14
#define GGL_MAX_GROUP 4 /* most members of a group */

typedef struct ggl_operand {
    ggl_type type;
    int region;    /* -1: the operand is absent */
    bool repacked; /* the whole repacked copy of a weight starts at offset; only for src[1] of
                      LINEAR. nb[] are the strides of the file's layout */
    bool form;     /* it has the form that the backend wants (ggl_form): rows of 32-bit words */
    bool
        in_chunk; /* inside a loop: it has memory for one chunk (ggl_body.chunk), in which `loop` leads from one element to the
                      next */
    size_t offset;
    size_t loop;              /* inside a loop: bytes to add to offset for each turn */
    int64_t ne[GGL_MAX_DIMS]; /* ne[3]: 1 or GGL_N; inside a loop 1 */
    size_t nb[GGL_MAX_DIMS];  /* strides in bytes; nb[0] is the size of an element (or block), as
                                 rows are dense */
} ggl_operand;

/* LOOP, END: the steps between them run for each element of the batch. If a body runs in chunks (ggl_body.chunk), its steps are two
 * loops, one after the other: of the nodes that run forward, and of the others. ggl/internal/turns.h has the order of their turns.
 * FORM: makes a form of an operand; only if the backend wants any (ggl_program_params.form). */
typedef enum ggl_step_kind {
    GGL_STEP_NODE,
    GGL_STEP_LOOP,
    GGL_STEP_END,
    GGL_STEP_FORM
} ggl_step_kind;

/* A form of an operand: what a backend makes from it before a step reads it, such as a product's
 * columns rounded to bytes. A step of its own makes it, once for all steps that read the same form
 * of the same elements. */
typedef struct ggl_form {
    int kind;        /* the backend's number of the form, from 1 on; 0: none */
    int src;         /* the source that is read in this form, which has the same number of rows */
    int with;        /* another source from which the form is made; -1: none */
    size_t row_size; /* bytes of a row of the form, a multiple of 4; rows are dense */
    double num;      /* a parameter of the form: steps with different ones do not share it */
} ggl_form;

typedef struct ggl_step {
    ggl_step_kind kind;
    /* Operator, numbers, stores, body and name. Shapes and types are those of the operands.
     * RESHAPE: copies the elements of src[0], in order, to dst, which may have another shape.
     * FORM: the first node that reads the form. LOOP, END: the call. */
    const ggl_tensor *node;
    ggl_operand dst;
    /* The operands of node->src. A LINEAR with an operand src[3] gathers: src[1] is the whole
     * weight [in, out, n], and matrix src[3][e] is multiplied with vector e. FORM: src[0] and
     * src[1] are the sources that ggl_form.src and ggl_form.with of the reader name. LOOP: src[0] is the slot of each element, if
     * the body runs in chunks. There, STATE reads an array of src[1], and KEEP writes one of src[KEEP_STATE], which are f32. */
    ggl_operand src[GGL_MAX_SRC];
    int n_src;
    int end;  /* LOOP: the index of its END; END: the index of its LOOP */
    int form; /* FORM: ggl_form.kind */
    /* A chain: n_links steps from this one on run as one step (1: this step alone; 0: it is in a
     * chain, but not the first). Each but the first reads the result of the one before: its source
     * `link` (-1: none), whose operand is absent, and nothing else of an earlier one. A FORM may read
     * the elements of that result in another shape. A result that
     * nothing else reads has region -1, but its shape and type. Only if the backend wants chains (ggl_program_params.chain).
     * In a loose chain (ggl_program_params.loose_chain), each step but the first reads whole results of any links before it, and
     * `link` is -1 in all of them: their operands are absent, and ggl_read() of the nodes tells which links these are. */
    int n_links, link;
    /* A group: the next n_members chains or single steps, from this one on, run as one step (1:
     * this one alone; 0: it is in a group or a chain, but not the first). None needs another, so a
     * backend may run their parts in any order. Results without links that are in the arena, and
     * not over a source, lie one after another there, in the order of the members; each begins at a
     * multiple of 64 bytes. Only if the backend wants groups (ggl_program_params.joins). */
    int n_members;
    /* The group's members are followed by a chain that runs with them, as the tail of the group: it
     * alone reads their results, which have region -1, but their shapes and types. Its operands that
     * are such results are absent; ggl_read() of its nodes tells which member each of them is. Its
     * first step has the number of its links, but n_members 0. Only if the backend wants tails
     * (ggl_program_params.tail). */
    bool has_tail;
    /* LINEAR with a repacked src[1]: while *waits, the step reads the weight at this place, in the
     * file's layout (ggl_segment.waits). NULL: it never does. */
    struct {
        const bool *waits;
        ggl_loc loc;
    } original;
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
    /* Returns the form in which the step reads one of its sources; kind 0: it reads all as they are.
     * Operands of the step are complete except for offsets in the arena. NULL: no step wants a
     * form. */
    ggl_form (*form)(const ggl_backend *b, const ggl_step *step);
    /* Returns how many of the n steps (2 or more) it runs as one, from the first one on; 1: it runs
     * each by itself. The steps are a chain: see ggl_step.n_links; operands are complete except for
     * offsets in the arena. NULL: there are no chains. */
    int (*chain)(const ggl_backend *b, const ggl_step *step, int n);
    /* The same, about steps that could be a loose chain (ggl_step.n_links): they may read results of any steps before them,
     * and compute values of any shape. Asked where chain() wants no chain. NULL if none. */
    int (*loose_chain)(const ggl_backend *b, const ggl_step *step, int n);
    /* Returns whether the backend runs `next` and the n steps member[] (1 to GGL_MAX_GROUP - 1) as
     * one. Each is a step, or the first link of a chain, which follows it; none needs another.
     * member[] have joined already. Operands are complete except for offsets in the arena. NULL:
     * there are no groups. */
    bool (*joins)(const ggl_backend *b, const ggl_step *const *member, int n, const ggl_step *next);
    /* Returns whether the backend runs a chain together with the group of the n steps member[], whose
     * results it alone reads: see ggl_step.has_tail. chain[0].n_links is the number of its steps.
     * Operands are complete except for offsets in the arena. NULL: groups have no tails. */
    bool (*tail)(const ggl_backend *b, const ggl_step *const *member, int n, const ggl_step *chain);
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
