/* Runs made-up models: a descriptor's toy on any backends, with prompts cut as one likes. */
#ifndef TOY_RUN_H
#define TOY_RUN_H

#include "ggl/backends.h"
#include "ggl/sched.h"
#include "llm/arch.h"

typedef struct toy_model {
    llm_arch *arch;
    llm_arch_toy *toy;
} toy_model;

typedef struct toy_run {
    ggl_graph *graph;
    ggl_sched *sched;
    int64_t n_vocab;
    int split; /* layers below it run on backend 0, the others on the last */
} toy_run;

/* false: err says why, and nothing is held. */
bool toy_open(toy_model *t, const char *name, const char *text, size_t n, int variant,
              ggl_error *err);
void toy_close(toy_model *t);

#define TOY_CTX   96
#define TOY_BATCH 32
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
/* n tokens in pieces of `chunk` from a cleared slot. */
bool toy_prompt(toy_run *r, int slot, int n, int chunk, float *logits, ggl_error *err);

#endif
