/* Runs made-up models: a descriptor's toy on any backends, with prompts cut as one likes. */
#ifndef TOY_RUN_H
#define TOY_RUN_H

#include "ggl/backends.h"
#include "ggl/sched.h"
#include "llm/internal/arch.h"

typedef struct toy_model {
    llm_arch *arch;
    llm_arch_toy *toy;
    int draw; /* 0: the weights as they were made up; see toy_settle */
    /* adapters to run with, and what changes a copy of each f32 weight; NULL: none. Set after toy_open. */
    const llm_adapter_use *adapter;
    size_t n_adapters;
    const llm_arch_source *source; /* in place of the toy's; NULL: that */
    void (*change)(void *ctx, const ggl_tensor *w, float *data);
    void *change_ctx;
    bool embedding;         /* as llm_arch_params.embedding; a run can then end early */
    const ggl_watch *watch; /* NULL: none */
    const int32_t *tap;     /* as llm_arch_params.tap */
    int n_taps;
    int n_divided; /* products are divided among so many backends, which work side by side; 0: they are whole */
} toy_model;

typedef struct toy_run {
    ggl_graph *graph;
    ggl_sched *sched;
    float **weight; /* changed ones */
    int n_weights;
    int64_t n_vocab;  /* numbers of the first output: logits, or an embedding or score */
    int64_t n_tokens; /* of the vocabulary */
    bool sees_all;    /* texts are seen whole: prompts are not cut, and nothing can follow them */
    int split;        /* layers below it run on backend 0, the others on the last */
} toy_run;

/* false: err says why, and nothing is held. */
bool toy_open(toy_model *t, const char *name, const char *text, size_t n, int variant,
              ggl_error *err);
void toy_close(toy_model *t);

/* Draws other weights until f32 can hold what the model computes in its first n tokens (of a model with states: 20 of them
 * at most, for random weights make some states grow with every token): rounding the reference's values between operators, and its
 * sums of products, moves its logits by no more than a quarter of TOY_BOUND. Whether a backend is right can't be seen from the others: a made-up decay above 1
 * lets a state grow until its square is beyond f32. What is drawn again is printed. False: all draws are like that. */
bool toy_settle(toy_model *t, int n, ggl_error *err);

#define TOY_BOUND                                                                                  \
    1e-4 /* how far logits may be from the reference, as a share of the largest (of 1, if that is less) */
#define TOY_DRAWS 12

#define TOY_CTX   96
#define TOY_BATCH 32 /* TOY_CTX if the model sees texts whole */
#define TOY_SLOTS 2

/* split < 0: all on backend 0. */
bool toy_start(toy_run *r, const toy_model *t, ggl_backend *const *backend, int n_backends,
               ggl_backend *fold, int split, ggl_type kv, ggl_error *err);
/* The same with a placement of one's own: ggl_sched_params.place. */
bool toy_start_placed(toy_run *r, const toy_model *t, ggl_backend *const *backend, int n_backends,
                      ggl_backend *fold, int (*where)(void *, int, const char *), void *ctx,
                      ggl_type kv, ggl_error *err);
void toy_stop(toy_run *r);
/* Tokens first .. first+n-1 of a fixed text into a slot, at those positions; logits [n][n_vocab].
 */
bool toy_eval(toy_run *r, int slot, int first, int n, float *logits, ggl_error *err);
/* n tokens in pieces of `chunk` from a cleared slot; whole if the model sees them whole. */
bool toy_prompt(toy_run *r, int slot, int n, int chunk, float *logits, ggl_error *err);

#endif
