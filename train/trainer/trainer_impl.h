/* What the files of a trainer share. */
#ifndef LLM_TRAINER_IMPL_H
#define LLM_TRAINER_IMPL_H

#include "step.h"
#include "train_impl.h"

/* A stage of the reader: its graphs with and without gradients, and the rows that each reads. */
enum { READ_LOOK, READ_LEARN, READ_PLANS };
typedef struct train_stage {
    train_plan plan[READ_PLANS];
    llm_rows_input input[READ_PLANS][LLM_MAX_ROWS_INPUTS];
    int n_inputs[READ_PLANS];
    int64_t n_most, n_row; /* rows of a reading at most, and the numbers of each */
    bool learns, passes;   /* a weight of it learns; one of a stage before does */
} train_stage;

/* What the stages have made of a reading: rows and their gradients, by source. */
typedef struct train_read {
    const llm_train_reading *of;
    int64_t n[LLM_ARCH_MAX_SOURCES];
    float *row[LLM_ARCH_MAX_SOURCES], *drow[LLM_ARCH_MAX_SOURCES];
    llm_rows_windows windows[LLM_ARCH_MAX_SOURCES];
} train_read;

/* Keys or values that tokens read, of all readings of a run: read.K.keys and read.K.values, and their gradients. */
typedef struct train_kept {
    char *name; /* of the weight */
    bool is_values;
    int64_t ne[3], n_heads; /* of the stack; heads of a reading */
    float *data, *grad;
} train_kept;

typedef struct train_reader {
    llm_train_reader is;
    const llm_arch *arch;
    const llm_arch_source *source;
    llm_adapter_use
        *adapter; /* [n_adapters]: those of the trainer's with pairs for an eye or an ear */
    size_t n_adapters;
    int n_sources; /* of a text: 1, the stage */
    llm_arch_rows_of of[LLM_ARCH_MAX_SOURCES];
    train_stage stage[LLM_ARCH_MAX_SOURCES];
    int64_t n_given, n_more; /* numbers in place of a token, and those behind */
    train_kept *kept;
    int n_kept;
    bool learns; /* a weight of a stage does */
    /* Of a run's tokens: */
    train_read *read; /* [n_readings of the batch]; of NULL: not in this run */
    float *given, *more, *is_given;
    int32_t *seen;
} train_reader;

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
    int64_t n_steps, n_vocab, n_token_types;
    int64_t n_tokens; /* that it reads: a model that guesses for another one may know fewer */
    llm_train_output out;
    llm_train_guesses guesses;
    int64_t n_logits; /* of the model itself, beside layers that guess */
    int32_t tap[LLM_ARCH_MAX_TAPS];
    int n_taps;
    float *loss; /* [n_slots], a variable: the sums of the losses of a run's sequences */
    int32_t *pos, *slot, *end; /* of the tokens of a run; end: of their sequences */
    int32_t *no_type;          /* [n_batch] zeros */
    int32_t *page;             /* [n_slots][pages of a slot] */
    float *weight;             /* of tokens */
    float *zeros;              /* [n_batch][n_row], of layers that guess */
    train_reader reader;
};

/* What a run sets. "end" is an input of models that see texts whole. */
enum { TRAINER_INPUTS = 11 };
extern const char *const llm_trainer_input[TRAINER_INPUTS];
/* An output of layers that guess; without it, nothing depends on the rows that they read. */
#define ROW_GRADIENT  "row_gradient"
#define MORE_GRADIENT "more_gradient"

/* --- trainer_parts.c -------------------------------------------------------------------------- */

/* What has the gradient that the program gives, in the input of this name: the product of the n numbers of `out` with it. */
ggl_tensor *llm_trainer_of_gradient(ggl_graph *g, const char *name, ggl_tensor *out, int64_t n);
/* Lets weights of four dimensions that are only reshaped have three, so that they can learn. */
void llm_trainer_flatten(ggl_graph *g);
/* Makes the weights of the graph that learn variables, which are read where t keeps them, or, by products, where it has copies; lists them in weight[t->weights.n], and the copies, or NULL, in copy[]. Returns their number. */
int llm_trainer_let_learn(const llm_trainer *t, ggl_graph *g, ggl_tensor **weight,
                          ggl_tensor **copy);

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

/* --- reader.c: its graphs ----------------------------------------------------------------------- */

/* Finds out what tokens read. Without a reader, nothing. */
GGL_NODISCARD ggl_status llm_reader_init(llm_trainer *t, ggl_error *err);
/* Makes the graph of stage k, and *out what has the gradient by its rows. */
GGL_NODISCARD ggl_status llm_reader_build(llm_trainer *t, int k, ggl_graph **g, ggl_tensor **out,
                                          ggl_error *err);
/* True for an input of the tokens' graph that comes from the reader. */
bool llm_reader_gives(const llm_trainer *t, const char *input);
/* Notes what the tokens' graph reads. */
GGL_NODISCARD ggl_status llm_reader_note(llm_trainer *t, const ggl_graph *g,
                                         const llm_arch_result *built, ggl_error *err);
/* Lets the tokens' graph read the rows that the reader keeps, and lists these variables in kept[n_kept], and in into[n_kept] those of their gradients, if
 * `into` is not NULL. Returns their number. */
int llm_reader_keep(llm_trainer *t, ggl_graph *g, ggl_tensor **kept, ggl_tensor **into);
/* Makes the plans of the stages. */
GGL_NODISCARD ggl_status llm_reader_plan(llm_trainer *t, ggl_error *err);
size_t llm_reader_bytes(const llm_trainer *t);
void llm_reader_fini(llm_trainer *t);

/* --- reading.c: its runs ------------------------------------------------------------------------ */

/* Checks what the batch says of readings; the tokens' own numbers are checked. */
GGL_NODISCARD ggl_status llm_reader_check(const llm_trainer *t, const llm_train_batch *b,
                                          ggl_error *err);
/* Runs the stages for what n_seq sequences from `first` on read, whose n tokens begin at `at`, and prepares the tokens' inputs. */
GGL_NODISCARD ggl_status llm_reader_read(llm_trainer *t, const llm_train_batch *b, int64_t first,
                                         int64_t n_seq, int64_t at, int64_t n, ggl_error *err);
/* Sets the inputs of the tokens' graph. */
GGL_NODISCARD ggl_status llm_reader_set(llm_trainer *t, const train_plan *p,
                                        const llm_train_batch *b, int64_t first, int64_t at,
                                        int64_t n, ggl_error *err);
/* Adds the gradients of the stages' weights, after a run of the tokens' plan. */
GGL_NODISCARD ggl_status llm_reader_learn(llm_trainer *t, const train_plan *p,
                                          const llm_train_batch *b, int64_t first, int64_t n_seq,
                                          int64_t at, int64_t n, ggl_error *err);
/* Drops what the stages have made. */
void llm_reader_forget(llm_trainer *t, const llm_train_batch *b);

/* --- trainer_choice.c ------------------------------------------------------------------------- */

/* True if numbers of the type could be changed a little, and products read them. */
bool llm_train_is_of_numbers(ggl_type of);
/* Makes the list of the weights that learn, by the gradients of graphs that are not run: those that have one. */
GGL_NODISCARD ggl_status llm_trainer_choose(llm_trainer *t, ggl_error *err);

#endif
