/* A step of the optimizer over all weights that learn. */
#ifndef LLM_TRAIN_STEP_H
#define LLM_TRAIN_STEP_H

#include "dynamic.h"
#include "train_impl.h"

/* Weights whose states are f32 learn where they are, by one graph. Those whose states are packed go, some blocks at a time, through a room
 * where all numbers are f32, and where graphs of the same kind work: one for any blocks, and, as Muon looks at whole matrices, one for each shape
 * of these. */
typedef struct train_step {
    train_plan here;
    struct step_plan {
        train_plan plan;
        int64_t ne[2]; /* of the matrices; 0: it is for any blocks */
        int64_t room;  /* numbers that it computes */
        bool has_square;
    } * plan;
    struct step_piece { /* blocks of a weight, which one thread moves */
        const llm_train_weight *w;
        int64_t first, n, at; /* its numbers from `first` on, and where they begin in the room */
    } * piece;
    struct step_job {           /* a run of a plan */
        int64_t plan, first, n; /* pieces */
    } * job;
    size_t n_plans, n_pieces, n_jobs, cap_plans, cap_pieces, cap_jobs;
    int64_t room; /* numbers of each of these: the most of a plan */
    float *x, *grad, *mean, *square;
    dynamic_codes *codes; /* of means, and of mean squares */
    int n_threads;
} train_step;

/* Makes it for the list, which outlives it. On failure llm_train_step_fini must be called, too. */
GGL_NODISCARD ggl_status llm_train_step_init(train_step *s, const train_weights *list,
                                             const llm_train_params *p, ggl_error *err);
void llm_train_step_fini(train_step *s);
/* Runs it with the inputs of optimizer.c. */
GGL_NODISCARD ggl_status llm_train_step_run(train_step *s, const float in[STEP_INPUTS],
                                            ggl_error *err);
/* Returns the bytes that it needs besides the weights and their states. */
size_t llm_train_step_bytes(const train_step *s);

#endif
