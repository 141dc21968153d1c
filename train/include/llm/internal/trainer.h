/* Trains a model: the graph that its descriptor says, with the gradients of its loss (ggl/internal/gradient.h), and an optimizer
 * as another graph. Weights that learn are f32 copies in memory, whatever type the file has; all others are read as they
 * are. docs/gradients.md says more.
 *
 *     llm_trainer *t;
 *     llm_train_params p = {.size = sizeof p, .backend = cpu, .reference = reference, .n_ctx = 256, .n_batch = 2048};
 *     if (llm_trainer_new(&t, arch, &source, &p, &err) != GGL_OK) ..
 *     for (each step) {
 *         llm_train_batch b = {.token = token, .target = target, .length = length, .n_seq = n};
 *         llm_trainer_add(t, &b, &sum, &err);          // as often as the step has batches
 *         llm_trainer_step(t, rate, &norm, &err);
 *     }
 *
 * The same calls give the same bits, with any number of threads of the backend.
 *
 * Threads: a trainer, and the backends that it borrows, are used by one thread at a time. */
#ifndef LLM_TRAINER_H
#define LLM_TRAINER_H

#include "ggl/backend.h"
#include "llm/internal/arch.h"
#include "llm/internal/media.h"
#include "llm/internal/rows_gather.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- trainers --------------------------------------------------------------------------------- */

typedef struct llm_trainer llm_trainer;

/* train/trainer/optimizer.c has their formulas. */
typedef enum llm_train_optimizer_kind {
    LLM_TRAIN_ADAMW,
    LLM_TRAIN_SGD, /* with the momentum beta1 */
    LLM_TRAIN_MUON /* for matrices of layers, with the momentum beta1; AdamW for the rest */
} llm_train_optimizer_kind;

typedef struct llm_train_params {
    size_t size; /* sizeof(llm_train_params): ggl/internal/params.h */
    /* Borrowed: a backend that uses host memory in place; and the one that computes the graphs' constants, in double. */
    ggl_backend *backend, *reference;
    int64_t n_ctx;   /* tokens of the longest sequence; 0: 256 */
    int64_t n_batch; /* most tokens of one run, at least n_ctx; 0: n_ctx */
    /* Patterns of the names of the weights that learn ('*' matches anything). NULL: all that the loss depends on. Weights
     * of integers, and those that no gradient reaches, such as frequencies of rotations, never do. */
    const char *const *learn;
    size_t n_learn;
    size_t
        keep; /* as ggl_grad_params.keep: the most bytes of values that gradients need; 0: all but what costs next to nothing to compute again */
    /* AdamW (Loshchilov and Hutter, 2019): which part of the mean and of the mean square stays, 0: 0.9 (of Muon 0.95) and 0.999; what is
     * added to the root of the mean square, 0: 1e-8; and the decay of matrices, which is multiplied by the rate. Vectors do
     * not decay. */
    double beta1, beta2, eps, decay;
    double
        max_norm; /* the longest gradient of all weights together, to which longer ones are cut; 0: none */
    /* Adapters that the model, and its eye or ear, are used with, borrowed as long as the trainer lives. Their weights, NAME.lora_a, NAME.lora_b and NAME.lora_magnitude, can learn, too: with
     * only_adapters, the model itself stays as it is, of whatever types. */
    const llm_adapter_use *adapter;
    size_t n_adapters;
    /* Most sequences of one run; 0: one for each 64 tokens of n_batch, or n_ctx if that is less. Caches have room for n_batch tokens and 64 for each
     * sequence; states have it for each sequence. */
    int64_t n_slots;
    /* Makes the loss of each token of the graph, a number, from the token's logits [n_vocab] and target (i32); NULL: cross
     * entropy. A failure is the graph's. */
    ggl_tensor *(*loss)(void *ctx, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target);
    void *ctx;
    /* [n_inputs]: the names of batched inputs that `loss` makes, of f32 or i32. Kept as long as the trainer. */
    const char *const *input;
    int n_inputs;
    llm_train_optimizer_kind optimizer;
    /* Quantization-aware: the graphs read the matrices that learn as they are when they are rounded to this type, and their gradients change
     * unrounded copies. GGL_F32: none is rounded. */
    ggl_type rounded;
    /* Only weights of the adapters learn, also if `learn` fits names of the model's. */
    bool only_adapters;
    /* The model's output through which it learns, "embedding" or "score", of which the program computes a loss and its gradient (llm_trainer_look,
     * llm_train_batch.gradient); not with `loss`. NULL: the logits, of which the loss is computed here. */
    const char *output;
    /* Bits of each number that the optimizer remembers of matrices: 32 (0: these), or 8, by dynamic codes. */
    int optimizer_bits;
    int n_threads; /* that pack these 8 bits, and round to bf16; 0: 1 */
    /* Asked between the nodes of a run that computes losses and gradients; true ends it with GGL_CANCELLED, after which llm_trainer_forget makes
     * the trainer as it was. Not asked in llm_trainer_step, which changes the weights. NULL: no run is ended. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    /* The layers that guess ahead learn (llm_arch_params.only = "guess"), through the scores of their guesses, and no weight that the model itself
     * reads; not with `output` or adapters. Batches then have `row`. */
    bool guess;
    /* With `guess`: the model for which that of the trainer guesses, from rows that enter its layers, and its source; batches then have `feature` and `given`, too. Both
     * outlive the trainer. NULL: layers guess for their own model. */
    const llm_arch *other;
    const llm_arch_source *other_source;
    /* What the tokens read besides: an eye or an ear, whose output `rows` stands in place of tokens, and its source; both outlive the trainer, and its weights
     * learn, too. NULL: tokens read nothing, or the stage of their own descriptor, which then learns with them. Batches have `reading`; not with
     * `output` or `guess`. */
    const llm_arch *eye;
    const llm_arch_source *eye_source;
    /* The longest reading: rows of the input, but not more than the descriptor says, or tokens of a text; 0: what it says, or n_ctx. */
    int64_t n_read;
    llm_arch_ignore eye_ignore; /* as llm_arch_params.ignore, of the eye */
    /* Products are in bf16: those with matrices that learn read copies, made after each step of the f32 numbers, and gradients of products with any
     * matrix of the model are products of bf16 (ggl_grad_params.bf16). Sums are f32, and so is everything else. Not with `rounded`. */
    bool bf16;
} llm_train_params;

/* What tokens read: rows of an input (docs/architectures.md, "Stages"), or the text of an encoder. */
typedef struct llm_train_reading {
    const float *row;             /* [n][llm_trainer_reader(t).n_input] */
    const llm_row_places *places; /* of a picture, or of a window of sound; NULL: all are 0 */
    const int32_t *token;         /* [n], in place of `row` */
    int64_t n;
} llm_train_reading;

/* Sequences one after the other. */
typedef struct llm_train_batch {
    const int32_t *token; /* [sum of the lengths]; each sequence begins at position 0 */
    const int32_t *type;  /* as many: as llm_batch.type. NULL: all are 0 */
    const int32_t
        *target; /* as many: the token that shall follow each; not with llm_train_params.output */
    const float *weight;   /* as many: how much each counts. NULL: each counts 1 */
    const int64_t *length; /* [n_seq], each 1 .. n_ctx */
    int64_t n_seq;
    const void *const *input; /* [llm_train_params.n_inputs]: what each has for all tokens */
    /* With llm_train_params.output, for llm_trainer_add: [sum of the lengths][llm_trainer_output(t).rows.n], the gradient of the loss by
     * each number of the output. With llm_train_params.guess: [sum of the lengths][llm_trainer_guesses(t).n_row], that of another loss by each number of
     * the rows that the layer returns, which is added to its own; NULL: zeros. */
    const float *gradient;
    /* With llm_train_params.guess: which layer guesses, and what it reads with each token, [sum of the lengths][n_row]: as docs/architectures.md says, the model's
     * row, or another layer's, of a token before. */
    int layer;
    const float *row;
    /* Of a model that guesses for another one: [sum of the lengths][n_heard], what the other one says of the token before each (llm_trainer_hear); and [sum of the
     * lengths], not 0 where `row` counts in its place. */
    const float *feature, *given;
    /* With a reader: what is read. Of an encoder, read[n_seq] says which one each sequence reads. Of an eye, place[sum of the lengths] is below 0 for a
     * token, and else the number of the row that stands in its place, counted through the rows of all readings one after the other. */
    const llm_train_reading *reading;
    int64_t n_readings;
    const int32_t *read, *place;
    /* Of an eye (NULL: the position in the sequence, and the one behind it): the places of tokens and rows, [LLM_N_PLACES], if the model has such; and
     * how many elements of its sequence each sees, if rows of a picture see each other (llm_arch_result.has_places, .given_together). */
    const int32_t *const *pos, *seen;
    float *
        row_gradient; /* [as row]: llm_trainer_add sets it to the gradient by `row`. NULL: it is not asked for */
} llm_train_batch;

/* Numbers in a byte each: codes of shares of the scale. train/trainer/dynamic.h says which. */
enum { LLM_TRAIN_BLOCK = 256 };
typedef struct llm_train_block {
    float scale;
    uint8_t code[LLM_TRAIN_BLOCK];
} llm_train_block;

/* A weight that learns. */
typedef struct llm_train_weight {
    const char *name; /* owned by the trainer */
    ggl_type type;    /* in the source */
    int n_dims;
    int64_t ne[GGL_MAX_DIMS];
    const void *origin; /* its numbers in the source: mostly those of a tensor, or rows of one */
    /* [ggl_count] f32, valid as long as the trainer: the weight, its gradient so far, and what the optimizer remembers of it, the
     * mean and the mean square of its gradients. Steps change them, and so may the program between the calls. */
    float *data, *grad, *mean, *square;
    /* What learns: `data`, or, with llm_train_params.rounded, what is rounded to it. */
    float *master;
    ggl_type rounded; /* to which data is rounded; GGL_F32: it is not */
    /* In place of mean and square, which are then NULL: the same in 8 bits. */
    llm_train_block *packed_mean, *packed_square;
    /* With llm_train_params.bf16: the same numbers in bf16, for the products that read them. NULL: none do. */
    uint16_t *copy;
} llm_train_weight;

/* Returns how many numbers it has. */
static inline int64_t llm_train_weight_count(const llm_train_weight *w) {
    return ggl_extents(w->ne, 0, GGL_MAX_DIMS, 1);
}
/* What goes on from step to step: what learns, and what the optimizer remembers of it. k = 0 .. LLM_TRAIN_STATES-1. */
enum { LLM_TRAIN_STATES = 3 };
typedef struct llm_train_state {
    void *data;
    size_t size;
    /* As a tensor of a file: f32 in the shape of the weight, or blocks as rows of i32. */
    ggl_type type;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS];
} llm_train_state;
llm_train_state llm_train_weight_state(const llm_train_weight *w, int k);
/* Returns the bytes of all that it has: its numbers, their gradient, and these states. */
size_t llm_train_weight_bytes(const llm_train_weight *w);

/* Returns about how many bytes the weights of a file need that learn by the parameters, with their gradients and states: those that `learn` fits. */
size_t llm_train_expected_bytes(const ggl_gguf *f, const llm_train_params *p);

/* Makes a trainer for the model of the source, whose tensors must have data. arch and source outlive it. On failure *out
 * is NULL. GGL_UNSUPPORTED names the operator that has no gradient, or the input that texts do not give; GGL_NOT_FOUND: a
 * pattern of `learn` fits no weight that can learn; GGL_USAGE, GGL_LIMIT, GGL_NOMEM; and as llm_arch_build does. */
GGL_NODISCARD ggl_status llm_trainer_new(llm_trainer **out, const llm_arch *arch,
                                         const llm_arch_source *source,
                                         const llm_train_params *params, ggl_error *err);
void llm_trainer_free(llm_trainer *t); /* NULL is fine */

/* Adds the gradients of the batch's loss to those so far. *loss (may be NULL): the sum of the tokens' losses, each times
 * its weight. A token's loss is the natural logarithm of 1 / the probability of its target. If *loss is no finite number,
 * the model or the weights of tokens are to blame. GGL_USAGE: a length, token or target is out of range. */
GGL_NODISCARD ggl_status llm_trainer_add(llm_trainer *t, const llm_train_batch *b, double *loss,
                                         ggl_error *err);
/* Computes the same *loss, and no gradients. each [n_seq] (may be NULL): the parts of the sequences. */
GGL_NODISCARD ggl_status llm_trainer_evaluate(llm_trainer *t, const llm_train_batch *b,
                                              double *loss, double *each, ggl_error *err);
/* With llm_train_params.output: computes it, row[sum of the lengths][llm_trainer_output(t).rows.n]. With llm_train_params.guess: the rows that the layer
 * returns. */
GGL_NODISCARD ggl_status llm_trainer_look(llm_trainer *t, const llm_train_batch *b, float *row,
                                          ggl_error *err);
/* With llm_train_params.guess: computes the rows that the layer returns, [sum of the lengths][n_row], and its scores, [..][n_scores]. */
GGL_NODISCARD ggl_status llm_trainer_guess(llm_trainer *t, const llm_train_batch *b, float *row,
                                           float *score, ggl_error *err);
/* The same of the model, which does not learn, for which is guessed: what is read of it, [..][n_heard], and its logits, [..][llm_trainer_n_vocab(t)]. */
GGL_NODISCARD ggl_status llm_trainer_hear(llm_trainer *t, const llm_train_batch *b, float *row,
                                          float *logits, ggl_error *err);
/* A step of the optimizer by the gradients so far, which are zeros afterwards. *norm (may be NULL): their length, before it was
 * cut. If that is no finite number, no weight changes. */
GGL_NODISCARD ggl_status llm_trainer_step(llm_trainer *t, double rate, double *norm,
                                          ggl_error *err);

/* Drops the gradients so far, as if nothing had been added since the last step. */
void llm_trainer_forget(llm_trainer *t);

/* Returns the bytes of the values between operators, with caches, of the graphs that were made so far. */
size_t llm_trainer_value_bytes(const llm_trainer *t);

/* The output through which it learns, and whether each token sees all of its sequence. */
typedef struct llm_train_output {
    llm_arch_output rows;
    bool sees_all;
} llm_train_output;
llm_train_output llm_trainer_output(const llm_trainer *t);
/* With llm_train_params.guess: the layers, as llm_arch_result says. */
typedef struct llm_train_guesses {
    int n_layers;
    bool apart, from_second;
    int64_t n_row,
        n_heard; /* n_heard: of what is read of the model, n_row if it guesses for itself */
    int64_t n_scores;
    const int32_t
        *token; /* [n_scores]: which token each score is of; NULL: of that of its number */
} llm_train_guesses;
llm_train_guesses llm_trainer_guesses(const llm_trainer *t);
/* What tokens read. */
typedef struct llm_train_reader {
    bool is_there;
    bool is_own;            /* a stage of the tokens' descriptor: each sequence has a reading */
    bool of_text;           /* a reading is tokens, and not rows */
    int64_t n_input;        /* numbers of a row of the input */
    int64_t n_most;         /* of the longest reading */
    llm_arch_rows_of input; /* of rows: how they are prepared */
    bool has_places, together;
} llm_train_reader;
llm_train_reader llm_trainer_reader(const llm_trainer *t);
/* Returns how many rows stand in place of tokens for a reading of n rows. */
int64_t llm_trainer_n_rows(const llm_trainer *t, int64_t n);
int64_t llm_trainer_n_vocab(
    const llm_trainer *t); /* how many tokens the model knows: logits, if it has them */
int llm_trainer_n_weights(const llm_trainer *t);
llm_train_weight llm_trainer_weight(const llm_trainer *t, int k); /* k = 0 .. n-1 */
/* How many steps there were, by which AdamW makes up for the zeros that it begins with; and sets it, to go on. */
int64_t llm_trainer_n_steps(const llm_trainer *t);
void llm_trainer_set_steps(llm_trainer *t, int64_t n);

/* --- files ------------------------------------------------------------------------------------ */

/* Writes the model, or an adapter: the keys and tensors of the file that it was opened from, with the weights as they are
 * now. f32: those that learn are f32; else they are rounded to the file's types. What is at the path is replaced when all
 * is written. */
GGL_NODISCARD ggl_status llm_trainer_write(const llm_trainer *t, const ggl_gguf *of, bool f32,
                                           const char *path, ggl_error *err);

/* Returns how many bytes llm_trainer_write would write; 0: not known. */
uint64_t llm_trainer_write_size(const llm_trainer *t, const ggl_gguf *of, bool f32);
/* Fails as llm_trainer_write would, if a type of the file is one to which no number can be rounded: to know it before a training. GGL_UNSUPPORTED. */
GGL_NODISCARD ggl_status llm_trainer_check_write(const llm_trainer *t, const ggl_gguf *of, bool f32,
                                                 ggl_error *err);

/* Writes what a trainer of the same weights needs to go on with the same bits: the weights that learn as f32, what AdamW
 * remembers, the number of steps, and a text of the caller's, under the key "training.own". It has no gradients, so it is to be
 * called after a step. */
GGL_NODISCARD ggl_status llm_trainer_write_state(const llm_trainer *t, ggl_str own,
                                                 const char *path, ggl_error *err);
/* Returns how many bytes it would write, without those of the text; 0: not known. */
uint64_t llm_trainer_state_size(const llm_trainer *t);
/* Checks that the file has what was written to it, by its digest. GGL_FORMAT: it was changed, or is no such state. */
GGL_NODISCARD ggl_status llm_trainer_check_state(const ggl_gguf *f, ggl_error *err);
/* Reads it. GGL_FORMAT: the file has no such state, or that of other weights; the trainer is then as before. */
GGL_NODISCARD ggl_status llm_trainer_read_state(llm_trainer *t, const ggl_gguf *f, ggl_error *err);

/* A new adapter, which changes nothing at first: A is random, and B is zeros. */
typedef struct llm_train_pairs {
    size_t size; /* sizeof(llm_train_pairs) */
    int64_t
        rank; /* 0: 16. Of a matrix with a shorter side: that side, or, if both `rank` and `matrix` are given, an error; above those of all, an error */
    double alpha; /* what is added to a matrix is alpha / rank times B A; 0: 2 * rank */
    /* Patterns of the names of the matrices that it changes, of the model and of its eye or ear. NULL: all that the model's layers multiply with. */
    const char *const *matrix;
    size_t n_matrices;
    uint64_t seed; /* of A */
    /* With the lengths of the changed rows (DoRA), which are those of the model's at first. The source's tensors must have data. */
    bool magnitudes;
    /* An eye or an ear beside the model, as in llm_train_params; NULL: there is none. */
    const llm_arch *eye;
    const llm_arch_source *eye_source;
    llm_arch_ignore eye_ignore;
} llm_train_pairs;

/* Writes it, for the model of the source, to memory, as llm_adapter_open_memory reads it; the caller frees *data by ggl_free. GGL_NOT_FOUND: a
 * pattern fits no matrix; GGL_USAGE: a rank or alpha that cannot be; and as llm_arch_build does. */
GGL_NODISCARD ggl_status llm_train_new_adapter(const llm_arch *arch, const llm_arch_source *source,
                                               const llm_train_pairs *params, void **data,
                                               size_t *size, ggl_error *err);

/* A new model, which has learned nothing yet: the sizes that its keys say, and random weights; or one that lacks some tensors, with these. */
typedef struct llm_train_new {
    size_t size; /* sizeof(llm_train_new) */
    const llm_arch *arch;
    const char *name; /* general.architecture */
    /* has the tokenizer: its keys tokenizer.* become the model's. NULL: the model has no tokens, or there is a base */
    const ggl_gguf *vocab;
    /* In place of `vocab`, a model, with the data of its tensors: its tensors and keys stay as they are, but for the keys that are given, and what the descriptor
     * demands besides is new. */
    const ggl_gguf *base;
    ggl_str descriptor; /* becomes the key general.descriptor; of 0 bytes: there is none */
    const char *const *
        key; /* [n_keys]: KEY=VALUE; a KEY that begins with '.' is one of the architecture. VALUE is a whole number, a number with
                               * a point or an exponent, true, false, a list of whole numbers [1,2], or else a text */
    size_t n_keys;
    const char *const *
        with; /* [n_with]: patterns of tensors that the descriptor does not demand, and that it shall have */
    size_t n_with;
    /* [n_init]: PATTERN=MEAN or PATTERN=MEAN,SIGMA: a normal distribution of the weights of such names; the first that fits counts. Before these
     * that are usual: norms 1, biases 0, and matrices 0 with `sigma`, less in those that end a layer. */
    const char *const *init;
    size_t n_init;
    double sigma; /* 0: 0.02 */
    uint64_t seed;
} llm_train_new;

/* Writes it. GGL_USAGE: a key or init is wrong; GGL_NOT_FOUND: a pattern fits no tensor, or a key is missing; GGL_FORMAT: `vocab` has no
 * tokens; and as llm_arch_build does. */
GGL_NODISCARD ggl_status llm_train_new_model(const llm_train_new *params, const char *path,
                                             ggl_error *err);

/* --- more tokens ------------------------------------------------------------------------------ */

typedef struct llm_train_tokens {
    size_t size; /* sizeof(llm_train_tokens) */
    const llm_arch *arch;
    const ggl_gguf *of;         /* the model, with the data of its tensors */
    const char *const *special; /* [n_special]: the tokens' spellings */
    size_t n_special;
    uint64_t seed;
} llm_train_tokens;

/* Writes the model with more special tokens at the end of its vocabulary. Each tensor with a row for every token, as the descriptor says,
 * gets rows for them, in its type: numbers of a normal distribution with the mean and the spread that their column has in the model. Rows
 * that are there already, as of padded vocabularies, stay as they are. *first: the first token's id. GGL_USAGE: a token is empty, no
 * UTF-8, given twice or in the vocabulary; GGL_FORMAT: the model has no tokens; GGL_UNSUPPORTED: a type cannot be written; and as
 * llm_arch_build. */
GGL_NODISCARD ggl_status llm_train_add_tokens(const llm_train_tokens *params, const char *path,
                                              int32_t *first, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
