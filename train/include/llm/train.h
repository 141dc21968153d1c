/* Trains: a model, or an adapter (LoRA) beside it, learns from texts, conversations, preferences, or another model. docs/training.md
 * says what the parameters do, and docs/training-data.md what files it learns from. llm/llm.h says what all calls have in common.
 *
 *     llm_training *t;
 *     const char *file[] = {"chats.jsonl"};
 *     llm_training_params p = {.size = sizeof p, .file = file, .n_files = 1, .lora = true};
 *     llm_training_report r = {.size = sizeof r};
 *     ggl_status st = llm_training_open(&t, "model.gguf", &p, &err);
 *     while (st == GGL_OK && !r.is_last) {
 *         st = llm_training_step(t, &r, &err);
 *         printf("%lld %g\n", (long long)r.step, r.loss);
 *     }
 *     if (st == GGL_OK)
 *         st = llm_training_write(t, "adapter.gguf", false, &err);
 *     llm_training_close(t);
 *
 * llm_training_run does all of this, with checkpoints. The same parameters and files give the same bits, with any number of threads,
 * and also if the training was saved and resumed.
 *
 * Threads: only one thread at a time may use a training; but llm_training_cancel may be called from any thread, and from a signal
 * handler.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef LLM_LLM_TRAIN_H
#define LLM_LLM_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_training llm_training;

typedef struct llm_training_params {
    size_t size; /* sizeof(llm_training_params) */

    /* --- what it learns from --- */
    const char *const
        *file; /* [n_files]: texts, JSON lines or JSON, all of one kind; "-": standard input */
    size_t n_files;
    const char *const *
        valid_file; /* [n_valid_files]: from which it does not learn, but on which it is measured */
    size_t n_valid_files;
    /* Without valid_file: which share of the items is not learned from, but measured; 0: a twentieth, but at most 64 items and none of fewer than 20;
     * below 0: none. */
    double valid_share;
    /* Most tokens of a measurement, of documents or conversations that are spread over all that could be; below 0: any. 0: a thirtieth of the tokens
     * that it learns from, or those of a step, so that ten measurements cost about a tenth of the time. */
    int64_t valid_max;
    const char *separator;     /* of the documents of a text file; NULL: a file is a document */
    bool all_tokens;           /* of conversations: all tokens count, not only those of answers */
    bool drop_long;            /* items of more than n_ctx tokens are left out; else they are cut */
    const char *chat_template; /* as llm_open_params.chat_template */

    /* --- what learns --- */
    const char *arch; /* as llm_open_params.arch */
    /* Quantization-aware: the model computes with its matrices rounded to this type, such as "q4_0", while they learn, and is written with
     * it. NULL: not rounded. Not with an adapter. */
    const char *round_to;
    bool lora; /* a new adapter, and the model stays as it is */
    int64_t
        rank; /* of the adapter; 0: 16. Matrices with a shorter side have pairs of that rank, unless `matrix` is given, too */
    double alpha; /* of the adapter; 0: 2 * rank */
    bool
        rs; /* of a new adapter: its change counts alpha / sqrt(rank) times (rsLoRA), not alpha / rank */
    bool
        dora; /* of a new adapter: it has a length for each row that it changes, which learns by itself (DoRA) */
    const char *const *
        matrix; /* [n_matrices]: patterns of the matrices that the adapter changes, of the model and of mmproj; none: all of the model's layers */
    size_t n_matrices;
    const char
        *adapter; /* an adapter's file that goes on learning, in place of a new one; NULL: none */
    /* [n_learn]: patterns of the names of the weights that learn, such as "blk.*", of the model, or, with an adapter, of that; none: all. */
    const char *const *learn;
    size_t n_learn;
    /* The model's layers that guess tokens ahead learn (llm_open_params.draft "" uses them), and all of its other weights stay as they are. What they learn is
     * not the text, but the probabilities that the model itself gives (teacher_share mixes them). draft_depth: guesses in a chain, each made after those before
     * it; 0: 2, or as many as there are layers. */
    bool draft;
    int64_t draft_depth;
    /* In place of the model's own layers, a model that guesses for it from rows of its layers (EAGLE) learns so, and is what is written; NULL: none. */
    const char *draft_model;

    /* --- steps --- */
    int64_t n_ctx;   /* most tokens of a sequence; 0: the model's own, but at most 1024 */
    int64_t n_batch; /* most tokens of a step; 0: 2048, and 16384 of texts that belong together */
    int64_t
        n_seq; /* most conversations, answers, pairs or groups of a step; 0: 8, but 32 groups; of texts, as many as n_batch has room for */
    int64_t
        n_ubatch; /* most tokens that are computed at once; 0: 512, or what the longest sequence needs */
    int64_t n_steps; /* 0: by n_epochs, or minutes */
    double n_epochs; /* how often it sees all items; 0: 3 times conversations, 1 time others */
    double
        minutes; /* it ends after so many; 0: no limit. The number of steps is estimated from the first ones */
    double
        rate; /* the largest learning rate; 0: by the model's size (llm_training_facts.rate): 2e-4 of an adapter and 2e-5 of a model of a billion weights and more,
           * more of smaller ones; a tenth of it with preferences */
    const char *
        schedule; /* of the rate, after the warm-up: "cosine" (NULL: this one), "linear" or "constant" */
    double rate_end; /* which share of it is left at the end; 0: none */
    double
        rate_hold; /* for which share of the steps after the warm-up it stays at its largest; 0: none */
    int64_t
        n_warmup; /* steps in which the rate grows from 0; 0: a thirtieth of all; below 0: none */
    /* AdamW, 0: 0.9, 0.999 and 1e-8; and the decay of matrices, 0: none. */
    double beta1, beta2, eps, decay;
    /* "adamw" (NULL: this one), "sgd" (with the momentum beta1), or "muon": for the matrices of layers, with the momentum beta1 (0: 0.95),
     * and AdamW for the rest. */
    const char *optimizer;
    /* Bits of each number that the optimizer remembers of a matrix, its mean and its mean square: 32 (0: these), or 8, which leaves 10 of the 16
     * bytes that each weight needs. */
    int32_t optimizer_bits;
    /* Products are computed in bf16, with sums in f32: those with matrices that learn by copies of these, which need 2 more bytes for each
     * weight. What learns stays f32. Faster on processors with AVX-512 BF16. Not with round_to. */
    bool bf16;
    double max_norm; /* longer gradients are cut to this length; 0: 1; below 0: none is cut */
    /* Into how many parts a step is divided, whose gradients are made one by one and then added: as many processes may share them, with the same
     * bits (llm_training_join). 0: as many as there are processes. */
    int64_t n_parts;
    uint64_t seed; /* of the order of the items, and of a new adapter */
    /* Bytes for values that gradients need, of the values between the layers; what is more is computed twice. 0: no limit */
    size_t memory;
    int32_t n_threads; /* 0: one for each physical core that we may use */

    /* --- other losses --- */
    double dpo_beta; /* of preferences: how far the model may go from what it was; 0: 0.1 */
    const char *
        teacher; /* a model with the same vocabulary, whose probabilities it learns; NULL: none. As many logits, and nearly all tokens equal. Or a file of `record` */
    double
        teacher_share; /* how much these, or with `draft` the model's own, count; the rest is the text itself. 0: 1, all */
    double teacher_temp; /* the temperature of both models' probabilities; 0: 1 */
    /* A file for what the teacher says of all sequences, the likeliest record_top tokens after each token (0: 32); it is written before the first step, and
     * learned from in place of the teacher itself, in this training and, as `teacher`, in others. One that is there is used if it has them. NULL: none. */
    const char *record;
    int64_t record_top;
    /* Of texts that belong together, as embedding models and rerankers learn them: what similarities are divided by; 0: 0.05. Not of rerankers, which
     * have scores. */
    double contrast_temp;
    /* [n_dims]: vectors that are cut to so many numbers shall be good, too (Matryoshka); the loss is the mean of theirs. None: whole vectors only. */
    const int64_t *dim;
    size_t n_dims;
    const char *
        pooling; /* how the vectors of a text's tokens become one: "mean", "last" or "cls"; NULL: as the model's file says, else the mean */
    /* Makes the loss of each token, a number, from its logits [n_vocab] and the token that follows (i32), out of operators
     * of ggl/graph.h; NULL: cross entropy. Not with preferences or a teacher. */
    ggl_tensor *(*loss)(void *user, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target);

    /* --- calls back, each may be NULL --- */
    /* While files are read, and before the first step. False stops with GGL_CANCELLED. */
    bool (*progress)(void *user, const char *what, size_t done, size_t total);
    void (*note)(void *user,
                 const char *text); /* what a user should know, such as how many items were cut */
    void *user;

    /* --- an eye or an ear --- */
    /* As llm_open_params.mmproj: conversations may have pictures or sounds. Its weights learn, too, all or those that `learn` names; with an adapter its file stays as it
     * is, and pairs of its matrices learn if `matrix` names these, or the adapter has them. NULL: none. */
    const char *mmproj;
    /* Where it is written whenever the model is: llm_training_write and llm_training_run fail (GGL_USAGE) if weights of it learn and this is NULL. */
    const char *mmproj_out;
} llm_training_params;

/* Opens a model (as llm_open does), what it learns from, and what it takes to learn. On failure *out is NULL. GGL_USAGE: params are wrong;
 * GGL_FORMAT: a file of data is, with its line; GGL_UNSUPPORTED: the model has an operator without a gradient; GGL_NOT_FOUND: a
 * pattern fits no weight; GGL_LIMIT; GGL_NOMEM; and as llm_open. */
GGL_API GGL_NODISCARD ggl_status llm_training_open(llm_training **out, const char *path,
                                                   const llm_training_params *params,
                                                   ggl_error *err);
GGL_API void llm_training_close(llm_training *t); /* NULL is fine */
/* The call that runs ends soon with GGL_CANCELLED, also in the middle of a step, which is then as if it had not begun: the weights are those of
 * the last whole step. If the weights are just being changed, the step comes to its end. */
GGL_API void llm_training_cancel(llm_training *t);

/* What was opened. */
typedef struct llm_training_facts {
    size_t size; /* sizeof(llm_training_facts), set by the caller */
    const char *
        kind; /* "text", "answers", "preferences", "matches" (texts that belong together) or "scores" (pairs of texts with a number); not owned by the caller */
    int64_t n_items, n_tokens,
        n_counted; /* to learn from: sequences, their tokens, and those that count */
    int64_t n_valid_items,
        n_valid_tokens; /* on which it is measured; with a limit of minutes at first all on which it could be */
    int64_t n_weights, n_numbers; /* tensors that learn, and their elements */
    size_t learn_bytes;           /* of these, their gradients, and what the optimizer remembers */
    size_t value_bytes;           /* of the values between operators */
    size_t model_bytes, teacher_bytes; /* of weights that do not learn, and of a teacher */
    size_t memory_bytes;               /* of all these */
    size_t memory_left;                /* what the machine had free before; 0: not known */
    int64_t n_ctx, n_batch, n_ubatch;  /* as they are */
    int64_t n_steps;                   /* 0: not known before some steps have run */
    double rate;
    int64_t n_draws, n_valid_draws; /* what a step draws: sequences, pairs, or groups of texts */
    int64_t n_positions; /* the context of the model's earlier training; 0: its file does not say */
    /* True if the model that learns continues texts (llm_generate). Other models make vectors or scores, write down speech, or guess for another model. */
    bool writes;
} llm_training_facts;
/* GGL_USAGE: facts->size is wrong. */
GGL_API GGL_NODISCARD ggl_status llm_training_describe(const llm_training *t,
                                                       llm_training_facts *facts, ggl_error *err);

/* Where a training is, after a step. */
typedef struct llm_training_report {
    size_t size;     /* sizeof(llm_training_report), set by the caller */
    int64_t step;    /* steps so far */
    int64_t n_steps; /* of all; 0: not known yet */
    double epoch;    /* how often it has seen all items */
    double
        loss; /* of the step: the mean over tokens that count, in nats; of others than texts and answers, over pairs or groups */
    double
        accuracy; /* of preferences: the share of pairs in which the chosen answer gained; of matches: the share of texts to which the right one of the step's
                   * is the nearest; NaN: of other kinds. With `draft` it is measured only: of the guesses that follow right ones, the share that is what the model
                   * finds likeliest */
    double valid_loss,
        valid_accuracy; /* the same of the items that it is measured on; NaN: it was not measured after this step */
    double rate, norm;   /* learning rate; the gradient's length before it was cut */
    int64_t n_tokens;    /* tokens that it has learned from */
    double seconds;      /* since the beginning, without time between calls */
    double speed;        /* tokens per second, of the step */
    double seconds_left; /* estimated; NaN: not known */
    bool is_last;        /* there is no further step */
} llm_training_report;

/* Learns from the next items. report may be NULL. GGL_LIMIT: the training has diverged, and the message says so; what was learned is of
 * no use from then on. Or the first loss is not finite, which no rate causes. GGL_CANCELLED: nothing was learned; GGL_USAGE: the last step was done before. */
GGL_API GGL_NODISCARD ggl_status llm_training_step(llm_training *t, llm_training_report *report,
                                                   ggl_error *err);
/* Measures the loss, and the accuracy (may be NULL; llm_training_report), on the items that it does not learn from. GGL_NOT_FOUND: there are none. */
GGL_API GGL_NODISCARD ggl_status llm_training_evaluate(llm_training *t, double *loss,
                                                       double *accuracy, ggl_error *err);
/* Writes the model, or the adapter, as it is now, and the eye or the ear to mmproj_out: weights of a model have the types that they have in its file, and those of an
 * adapter are f32. GGL_IO: what is at the path is then as before. */
GGL_API GGL_NODISCARD ggl_status llm_training_write(const llm_training *t, const char *path,
                                                    bool f32, ggl_error *err);
/* Saves all that it takes to go on after this step with the same bits; and goes on, in a training that was opened with the same
 * parameters and files. GGL_FORMAT: the file is damaged; GGL_USAGE: it is of other parameters, files or weights, and the message
 * says of which. */
GGL_API GGL_NODISCARD ggl_status llm_training_save(const llm_training *t, const char *path,
                                                   ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_training_resume(llm_training *t, const char *path,
                                                     ggl_error *err);
/* Gets what the k-th step, k = 0 .., reported, also of those before it was resumed. False: there was no such step. */
GGL_API bool llm_training_past(const llm_training *t, int64_t k, llm_training_report *report);

typedef struct llm_training_run_params {
    size_t size; /* sizeof(llm_training_run_params) */
    const char *
        out; /* where the model or adapter is written at the end, and with each checkpoint. NULL: nowhere */
    const char *
        save; /* where the state is saved with each checkpoint; it is removed at the end. NULL: nowhere */
    int64_t save_every;  /* steps between checkpoints; 0: by minutes */
    double save_minutes; /* between checkpoints; 0: 5 */
    int64_t
        valid_every; /* steps between measurements; 0: a tenth of all, and at the end; below 0: only at the end */
    bool
        best; /* `out` is written when a measurement is better than all before it, and at no other time */
    int64_t
        patience; /* end after so many measurements in a row that are no better than the best; 0: go on */
    bool f32; /* as for llm_training_write */
    /* Called after each step, with its report. False ends the training there, as if it had been cancelled. */
    bool (*each)(void *user, const llm_training_report *report);
    /* Called when `out` was written, before the next step. False: as `each`. */
    bool (*written)(void *user, const llm_training_report *report);
    void *user;
} llm_training_run_params;
/* Runs all steps that are left, with measurements and checkpoints. If it is cancelled, it writes a checkpoint first, and returns GGL_CANCELLED. If
 * a checkpoint cannot be written, the training ends with that error, and the last one stays. Before the first step, GGL_IO: the files do not fit on their
 * disks, or another process writes them. */
GGL_API GGL_NODISCARD ggl_status llm_training_run(llm_training *t,
                                                  const llm_training_run_params *params,
                                                  ggl_error *err);

/* --- several processes ------------------------------------------------------------------------ */

/* Call this at the start of a program that trains. If mpirun has started it as one of several, they train together: all of them open the
 * same training, and share the parts of its steps. Rank 0 then goes on as if it were alone; the others call llm_training_follow. *rank is 0
 * without mpirun. GGL_UNSUPPORTED: this build has no MPI, or the processes are of different builds. */
GGL_API GGL_NODISCARD ggl_status llm_training_join(int *rank, ggl_error *err);
/* Takes the steps that rank 0 takes, and returns when it closes the training. GGL_USAGE: this is rank 0; GGL_DEVICE: it is gone. */
GGL_API GGL_NODISCARD ggl_status llm_training_follow(llm_training *t, ggl_error *err);

/* --- new models ------------------------------------------------------------------------------- */

typedef struct llm_new_model_params {
    size_t size;      /* sizeof(llm_new_model_params) */
    const char *arch; /* a descriptor's file, or the name of a built-in one */
    const char *name; /* general.architecture; NULL: the first of the descriptor's header */
    const char *
        tokenizer; /* a model, a tokenizer.json, or "builtin:stories": the new model gets its tokenizer. NULL: the model has no tokens, such as an eye, or `from` is given */
    /* In place of `tokenizer`: a model (a GGUF file, a Hugging Face folder, or a built-in one), to which the tensors are added that the descriptor demands and it lacks, such as a layer that guesses
     * ahead. All others, and all keys that are not given, stay as they are; and a descriptor that is not built in is stored with it (general.descriptor). */
    const char *from;
    /* [n_keys]: the sizes, KEY=VALUE, such as ".block_count=6". A KEY that begins with '.' is one of the architecture. VALUE is a whole number, a
     * number with a point or an exponent, true, false, a list of whole numbers [1,2], or else a text; of pooling_type also the name of one. */
    const char *const *key;
    size_t n_keys;
    /* [n_with]: patterns of tensors that the descriptor does not demand, and that it shall have, such as "output.weight". */
    const char *const *with;
    size_t n_with;
    /* [n_init]: how tensors begin, PATTERN=MEAN or PATTERN=MEAN,SIGMA of a normal distribution, the first that fits. Before these that are
     * usual: norms 1, biases 0, matrices 0 and `sigma`, those that end a layer sigma / sqrt(2 n_layer). */
    const char *const *init;
    size_t n_init;
    double sigma; /* 0: 0.02 */
    uint64_t seed;
    /* [n_special]: spellings of special tokens that the model `from` gets, such as "<|user|>" of a chat template, at the end of its vocabulary. It gets nothing else
     * then, and arch is as llm_open_params.arch. */
    const char *const *special;
    size_t n_special;
    int32_t *first_special; /* is set to the id of the first; NULL is fine */
} llm_new_model_params;
/* Writes a GGUF file of a model that has learned nothing yet, to learn from the beginning. GGL_NOT_FOUND: a key is missing, and the message
 * names it, or a pattern fits no tensor; GGL_USAGE: a key or init is wrong; GGL_FORMAT, GGL_IO, GGL_NOMEM.
 * With `from` and `special`, that model with more tokens: each tensor that has a row for every token gets rows for them, in its type, of normally distributed numbers with
 * the mean and the spread of each column; rows that are there already, as in a vocabulary that is padded, stay as they are.
 * GGL_USAGE: a token is empty, is no UTF-8, is given twice or is there already; and as llm_open. */
GGL_API GGL_NODISCARD ggl_status llm_new_model(const char *path, const llm_new_model_params *params,
                                               ggl_error *err);

/* --- checking --------------------------------------------------------------------------------- */

/* A number of a weight: its gradient, and how the loss changes with it. */
typedef struct llm_gradient {
    const char *weight; /* its name; valid during the call */
    int64_t element;
    double gradient, difference;
} llm_gradient;

typedef struct llm_gradients_params {
    size_t size;       /* sizeof(llm_gradients_params) */
    const char *arch;  /* as llm_open_params.arch */
    int64_t n_numbers; /* numbers that are compared, of all weights in turn; 0: 64 */
    int64_t n_tokens;  /* of each of three sequences, 2 to 1024; 0: 12 */
    uint64_t seed;     /* of the tokens and of the numbers */
    /* Gets each of them. False: stop with GGL_CANCELLED. NULL: none. */
    bool (*each)(void *user, const llm_gradient *g);
    void *user;
} llm_gradients_params;

typedef struct llm_gradients_result {
    size_t size; /* sizeof(llm_gradients_result), set by the caller */
    int64_t n_numbers, n_weights;
    double largest; /* of all gradients, not only of those that are compared */
    double error;   /* the largest difference between the two, as a share of that */
} llm_gradients_result;

/* Compares a model's gradients with differences of the loss, a small step to both sides, which the reference backend computes in double. With a
 * right descriptor, and right rules, the error is below 0.002; choices, such as which experts a token takes, can make it larger. Statuses of
 * llm_training_open. */
GGL_API GGL_NODISCARD ggl_status llm_verify_gradients(const char *path,
                                                      const llm_gradients_params *params,
                                                      llm_gradients_result *result, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
