/* The order in which the elements of the batch pass through the steps of a loop (GGL_STEP_LOOP), for backends in host memory:
 *
 *     ggl_turns_begin(&t, loop->node->body, slot, n, program->n_max);
 *     while (ggl_turns_next(&t))
 *         .. the steps of the loop, or, if t.backward, of the loop after it, for element t.turn of the batch ..
 *
 * Threads: each thread may have turns of its own. */
#ifndef GGL_INTERNAL_TURNS_H
#define GGL_INTERNAL_TURNS_H

#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_turns {
    bool backward;
    int64_t turn;     /* the element of the batch */
    int64_t in_chunk; /* its number in its chunk; 0: there are no chunks */
    /* If the body runs in chunks: the array of the state's memory that STATE reads (-1: the state is zeros), and the one that KEEP
     * writes (-1: none, as nothing reads it). The memory of a state of the nodes that run forward begins with ggl_turns_n_arrays arrays: the
     * state before each element of a chunk, and before the first element of each chunk but the first. Then, as in that of the other
     * nodes, there is an array for each slot. */
    int64_t from, to;
    /* The rest is for ggl_turns_next. */
    int64_t n, chunk;
    int64_t first, end; /* of the elements that run forward now */
    int64_t kept, own;  /* the first array of chunks, and of slots */
    const int32_t *slot;
    bool side_by_side; /* the elements of each slot lie side by side */
} ggl_turns;

/* Begins a loop over n elements of a batch. slot[n]: their slots; read only if the body runs in chunks. n_max: the largest batch
 * (ggl_program.n_max). */
void ggl_turns_begin(ggl_turns *t, const ggl_body *body, const int32_t *slot, int64_t n,
                     int64_t n_max);
/* Goes on to the next element; false: there is none. */
bool ggl_turns_next(ggl_turns *t);

/* Returns how many arrays these are, without those of the slots. */
int64_t ggl_turns_n_arrays(int64_t chunk, int64_t n_max);
/* Returns how many turns the nodes that run forward have in a batch of n. chunk: ggl_body.chunk. */
int64_t ggl_turns_n_forward(int64_t chunk, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
