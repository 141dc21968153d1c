/* What the files of a trainer share. */
#ifndef LLM_TRAINER_IMPL_H
#define LLM_TRAINER_IMPL_H

#include "step.h"
#include "train_impl.h"

struct llm_trainer {
    const llm_arch *arch;
    const llm_arch_source *source;
    llm_train_params p;
    train_weights weights;
    train_plan *learn;         /* [layers that guess], of others one */
    train_plan evaluate, look; /* `evaluate` and `look` are made when first asked for */
    train_step step;
    /* Of layers that guess, made when first asked for: the model itself; and [n_layers] what they return, and that with their scores. */
    train_plan hear, *told, *guessed;
    int64_t n_steps, n_vocab;
    int64_t n_tokens; /* that it reads: a model that guesses for another one may know fewer */
    llm_train_output out;
    llm_train_guesses guesses;
    int64_t n_logits; /* of the model itself, beside layers that guess */
    int32_t tap[LLM_ARCH_MAX_TAPS];
    int n_taps;
    float *loss; /* [n_slots], a variable: the sums of the losses of a run's sequences */
    int32_t *pos, *slot, *end; /* of the tokens of a run; end: of their sequences */
    int32_t *page;             /* [n_slots][pages of a slot] */
    float *weight;             /* of tokens */
    float *zeros;              /* [n_batch][n_row], of layers that guess */
};

/* What a run sets. "end" is an input of models that see texts whole. */
enum { TRAINER_INPUTS = 10 };
extern const char *const llm_trainer_input[TRAINER_INPUTS];
/* An output of layers that guess; without it, nothing depends on the rows that they read. */
#define ROW_GRADIENT "row_gradient"

/* --- trainer_graphs.c ------------------------------------------------------------------------- */

/* Makes the model's graph, with the output through which it learns, or that of a layer that guesses; or, own: that of the model itself, and what such
 * layers read. */
GGL_NODISCARD ggl_status llm_trainer_build_model(llm_trainer *t, int layer, bool own,
                                                 ggl_graph **out, ggl_error *err);
/* Makes the graph of the loss. *loss: that of each token. */
GGL_NODISCARD ggl_status llm_trainer_build(llm_trainer *t, int layer, ggl_graph **out,
                                           ggl_tensor **loss, ggl_error *err);
/* Makes the plan that adds up losses, and gradients if they are wanted; of a layer that guesses, it has the output of the gradient by the rows that the layer
 * reads. */
GGL_NODISCARD ggl_status llm_trainer_plan(llm_trainer *t, train_plan *p, int layer, bool gradients,
                                          ggl_error *err);
/* Makes the plan that computes the output; of a layer that guesses, with_scores or the rows alone; own: of the model itself. */
GGL_NODISCARD ggl_status llm_trainer_plan_look(llm_trainer *t, train_plan *p, int layer, bool own,
                                               bool with_scores, ggl_error *err);
/* Checks that the scores are of tokens of the model. */
GGL_NODISCARD ggl_status llm_trainer_check_tokens(const llm_trainer *t, ggl_error *err);

/* --- trainer_choice.c ------------------------------------------------------------------------- */

/* True if numbers of the type could be changed a little, and products read them. */
bool llm_train_is_of_numbers(ggl_type of);
/* Makes the list of the weights that learn, by the gradients of graphs that are not run: those that have one. */
GGL_NODISCARD ggl_status llm_trainer_choose(llm_trainer *t, ggl_error *err);

#endif
