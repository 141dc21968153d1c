/* Inside of a trainer. */
#ifndef LLM_TRAIN_IMPL_H
#define LLM_TRAIN_IMPL_H

#include "ggl/internal/gguf.h"
#include "ggl/internal/index.h"
#include "ggl/sched.h"
#include "llm/internal/trainer.h"

/* A graph, and its schedule on the trainer's backend. */
typedef struct train_plan {
    ggl_graph *g;
    ggl_sched *s;
} train_plan;

void llm_train_plan_fini(train_plan *p);
size_t llm_train_plan_bytes(const train_plan *p); /* of its values; 0: it was not made */
/* Finishes the graph p->g, and allocates what it needs, with outputs for up to n_rows tokens. */
GGL_NODISCARD ggl_status llm_train_plan(train_plan *p, const llm_train_params *of, int64_t n_rows,
                                        ggl_error *err);

/* The weights that learn, by name. */
typedef struct train_weights {
    struct train_weight {
        ggl_str name; /* owned; the key of the index */
        llm_train_weight w;
    } * at;
    int n;
    ggl_index index;
    void *row; /* room for a rounded row */
    int n_threads;
} train_weights;

/* Makes the list of the n weights, nodes of a graph that may be freed afterwards, and copies their numbers. On failure
 * llm_train_weights_fini must be called, too. GGL_NOMEM; GGL_NOT_FOUND: no weight can be of the type to which they are to be rounded. */
GGL_NODISCARD ggl_status llm_train_weights_init(train_weights *list, ggl_tensor *const *weight,
                                                int n, const llm_train_params *p, ggl_error *err);
/* Sets the numbers that graphs read by those that learn, rounded to their types, and the copies in bf16. */
void llm_train_weights_round(const train_weights *list);
void llm_train_weights_fini(train_weights *list);
/* Returns the weight of that name; NULL: it does not learn. */
llm_train_weight *llm_train_weights_find(const train_weights *list, const char *name);

/* --- copies.c: copies in bf16, for products --------------------------------------------------- */

/* Makes the copies of the weights of the list that products of the n graphs read, which have their numbers in the source. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_train_copies_init(train_weights *list, ggl_graph *const *g, size_t n,
                                               ggl_error *err);
/* Lets products read the copies of the n weights, nodes of the graph, and sets copy[k] to that of weight[k], or to NULL. A failure is the
 * graph's. */
void llm_train_copies_use(const train_weights *list, ggl_graph *g, ggl_tensor *const *weight, int n,
                          ggl_tensor **copy);

/* True for keys that say which part of a split model a file is: what is written is one file. */
bool llm_train_is_split_key(const ggl_gguf_value *v);

/* The inputs of a step, of which optimizer.c says what they are, and their names. */
enum { STEP_RATE, STEP_SHORTEN, STEP_MEAN_BY, STEP_SQUARE_BY, STEP_INPUTS };
extern const char *const llm_train_step_input[STEP_INPUTS];
/* What the names of all weights of layers contain: they begin with it, or with the prefix of a stage. */
#define LLM_TRAIN_LAYER "blk."
/* Makes the graph of a step of the n weights, whose states are f32. */
GGL_NODISCARD ggl_status llm_train_optimizer(train_plan *p, const llm_train_weight *w, int n,
                                             const llm_train_params *of, ggl_error *err);
/* True if a step looks at the weight as a matrix, and not at each number for itself. */
bool llm_train_steps_whole(const llm_train_weight *w, const llm_train_params *p);

/* Seeds for the numbers of a tensor, which do not depend on those of others; and the next number of a normal distribution (Box and Muller,
 * 1958). */
void llm_train_normal_seed(uint64_t rng[4], uint64_t seed, ggl_str name);
double llm_train_normal(uint64_t rng[4]);

#endif
