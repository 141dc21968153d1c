/* The inputs of a graph: as the user has set them, and each lane's copy. */
#ifndef GGL_SCHED_INPUTS_H
#define GGL_SCHED_INPUTS_H

#include "schedule.h"

typedef struct inputs {
    char *now;         /* [input_size]: all inputs, as ggl_inputs_set leaves them */
    char *lane;        /* [n_lanes][input_size]: inputs of the lane's batch; with one lane, `now` */
    int64_t *n;        /* by index of input: how many elements of the batch are set */
    byte_range *stale; /* [n_lanes][inputs]: set since the lane got it; only if not batched */
    uint64_t n_pages_set; /* how often the input "page" has changed */
} inputs;

bool ggl_inputs_init(inputs *in, const schedule *s);
void ggl_inputs_fini(inputs *in);

/* Sets an input as ggl_sched_set does. */
ggl_status ggl_inputs_set(inputs *in, const schedule *s, const char *input, const void *data,
                          size_t size, int64_t n, ggl_error *err);
/* Returns where a batched input is kept (ggl_sched_input_place). */
void *ggl_inputs_place(const inputs *in, const schedule *s, const char *input);
/* Returns the input "page" as set for the next run; NULL if not set, or the graph has no such input. */
const int32_t *ggl_inputs_pages(const inputs *in, const schedule *s);
/* Gives each slot pages of its own, if there are enough of them. */
void ggl_inputs_own_pages(inputs *in, const schedule *s);
/* Returns the lane's copy of all inputs. */
static inline const char *ggl_inputs_of_lane(const inputs *in, const schedule *s, int lane) {
    return in->lane + (size_t)lane * s->input_size;
}
/* Returns the lane's copy of the input t; NULL if t is not an input. */
const int32_t *ggl_inputs_lane_value(const inputs *in, const schedule *s, int lane,
                                     const ggl_tensor *t);
/* Brings the lane's inputs up to date for its next batch, of n elements. */
void ggl_inputs_fill_lane(inputs *in, schedule *s, int lane, int64_t n);

#endif
