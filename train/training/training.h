/* What a training of llm/train.h consists of, and how its parts are made. */
#ifndef TRAIN_TRAINING_H
#define TRAIN_TRAINING_H

#include <math.h>
#include <stdatomic.h>

#include "data.h"
#include "ggl/internal/alloc.h"
#include "history.h"
#include "llm/internal/adapter.h"
#include "llm/internal/embed.h"
#include "llm/internal/model.h"
#include "llm/internal/trainer.h"
#include "llm/train.h"
#include "order.h"
#include "recorded.h"
#include "schedule.h"

/* Between checkpoints, if nothing else is asked for. */
#define LLM_TRAIN_SAVE_MINUTES 5.0

/* The processes of a training, and how they reach each other: both calls wait until all bytes are sent, or have come. */
typedef struct train_group {
    int rank, n_ranks;
    ggl_status (*send)(void *ctx, int rank, const void *data, size_t size, ggl_error *err);
    ggl_status (*receive)(void *ctx, int rank, void *data, size_t size, ggl_error *err);
    void *ctx;
} train_group;

/* What a training is made of, opened by the caller, who closes it after the training. */
typedef struct train_parts {
    const llm_model *model;
    const llm_model *draft; /* that learns to guess for `model`, which stays as it is; NULL: none */
    const llm_tokenizer *tokenizer;
    const llm_chat *chat; /* NULL: the model has no template */
    llm_adapter
        *adapter;    /* that learns, with a model that stays as it is; NULL: the model learns */
    bool adapts_eye; /* it has pairs for the eye or the ear */
    ggl_backend *backend, *reference;
    int n_threads; /* of the backend */
    /* Sets share[n][n_vocab], the probabilities of the teacher for each of n tokens of whole sequences. NULL: there is no teacher. */
    ggl_status (*teach)(void *teacher, const int32_t *token, const int64_t *length, int64_t n_seq,
                        float *share, ggl_error *err);
    void *teacher;
    const train_group *group;                           /* NULL: this process is alone */
    ggl_str query_prompt, document_prompt, text_prompt; /* as of train_data_params */
    const ggl_error *why_no_prompts; /* NULL: the model's file has no wrong ones */
    int64_t n_taught;                /* the probabilities of a token that it sets */
    const ggl_gguf *teacher_file;    /* NULL: there is no teacher, or none of a file */
    const llm_model *eye; /* an eye or an ear, whose rows stand in place of tokens; NULL: none */
    const llm_file_senses *senses; /* NULL: tokens read nothing besides */
    size_t memory_left;            /* before anything was opened; 0: not known */
    size_t teacher_bytes;          /* of memory */
} train_parts;

/* Items as a batch of the trainer. */
typedef struct train_load {
    int32_t *token, *type, *target; /* [cap] */
    float *weight;
    int64_t *length, *item; /* [cap_seq] */
    int64_t n, n_seq, cap, cap_seq;
    float *share; /* [cap][n_vocab]: of the teacher; NULL: there is none */
    float *
        row; /* [cap][n_out]: the model's output, or the gradient by it; NULL: it learns through logits */
    /* What the tokens read, by llm_train_load_read, as llm_train_batch has it: NULL: nothing. */
    int32_t *read, *place, *pos[LLM_N_PLACES], *seen; /* [cap_seq], [cap] .. */
    llm_train_reading *reading;                       /* [n_readings] */
    llm_noticed_part *part;                           /* their memory */
    int64_t *number, *first_row;                      /* in the data; of the first row of each */
    int64_t n_readings;
    size_t cap_readings[4];
} train_load;

/* What it is measured on: items of the data, or of `valid`. */
typedef struct train_measured {
    int64_t *item; /* [n]; NULL: not chosen yet, and the numbers are those of all that could be */
    int64_t n, n_draws, n_tokens;
    double most; /* tokens; 0: not known */
} train_measured;
typedef struct train_guesses train_guesses; /* guesses.c */

struct llm_training {
    llm_training_params p; /* with the defaults in place of zeros; arrays and texts are not kept */
    train_parts of;
    train_fall fall;
    double usual_rate; /* the one if none is given */
    llm_train_optimizer_kind optimizer;
    ggl_type rounded;
    llm_arch_source source, other; /* other: of the model for which a draft guesses */
    llm_arch_source eye;           /* of parts.eye */
    bool reads;                    /* items read something besides their tokens, */
    int64_t n_read;                /* of so many rows or tokens at most */
    llm_arch_two two;
    llm_adapter_use use;
    llm_trainer *trainer;
    train_data *data, *valid; /* valid NULL: there is none, or it is a part of the data */
    train_order *order;
    train_kind kind;
    train_load load;
    train_guesses *guesses; /* NULL: no layers that guess learn */
    train_history history;
    llm_pooling pooling; /* of kinds that learn through the model's vectors or scores */
    int64_t *dim;        /* a copy, */
    char *mmproj_out;    /* and so is this */
    double *
        looked; /* contrast.c: the model's output of all items of a step, which its parts share; NULL: not made yet */
    train_recorded *recorded; /* by this training; NULL: nothing was */
    double *
        before; /* [items]: of preferences, the log-probabilities before the training; data's and then valid's */
    int64_t n_steps; /* 0: not known yet */
    int64_t step, draw, n_tokens;
    double seconds; /* of the steps, and of what comes between them within a call */
    train_measured measured;
    bool has_measured;        /* since the number of steps was settled */
    bool out_of_time;         /* at the end of the last step, or when it went on */
    char *settings;           /* a JSON object: what the bits depend on */
    atomic_bool stops;        /* llm_training_cancel */
    const train_group *group; /* that of the parts */
    bool has_noted_memory;    /* that there is too little */
    bool has_begun;           /* the other processes wait for orders */
    float *all,
        *part; /* [numbers]: gradients of all parts of a step, and of one; with several parts */
    int64_t n_numbers;          /* of all weights that learn */
    size_t part_bytes;          /* of `all` and `part` */
    void (*close)(void *owned); /* of what was opened for the training alone; NULL: nothing */
    void *owned;
};

/* Makes a training of parts. On failure *out is NULL, and the parts are the caller's to close. */
GGL_NODISCARD ggl_status llm_training_new(llm_training **out, const train_parts *of,
                                          const llm_training_params *params, ggl_error *err);

/* Returns the most tokens of a sequence, of which so many are asked for; 0: the model's own, but not too many. */
int64_t llm_train_n_ctx(const llm_model *m, int64_t asked);

/* --- load.c: items as batches ----------------------------------------------------------------- */

/* Needs the trainer. */
GGL_NODISCARD ggl_status llm_train_load_init(llm_training *t, ggl_error *err);
void llm_train_load_fini(train_load *l);
/* Loads as many of the n items as have room, from the first on, and returns how many: at least one, as an item alone has room. The tokens of item i count
 * weight[i] each, or `one` if weight is NULL. */
int64_t llm_train_load_fill(train_load *l, const train_data *d, const int64_t *item, int64_t n,
                            const double *weight, double one);
llm_train_batch llm_train_load_batch(const train_load *l);
/* Reads what the loaded items read: files, again. Without such items, nothing. */
GGL_NODISCARD ggl_status llm_train_load_read(llm_training *t, const train_data *d, ggl_error *err);

/* --- losses.c --------------------------------------------------------------------------------- */

/* The loss over items: sums over what `n` counts, tokens or groups. */
typedef struct train_sum {
    double loss, n;
    double
        guessing; /* of texts that belong together: the loss of a model that knows nothing of them */
    /* Of what can be right or wrong: pairs, in which the chosen answer gained; texts, which are nearest to the one that belongs to them; guesses. */
    double n_judged, n_right;
} train_sum;

/* Returns the share that is right; NaN: nothing was judged. */
static inline double llm_train_accuracy(const train_sum *s) {
    return s->n_judged > 0 ? s->n_right / s->n_judged : NAN;
}

/* What the mean loss of the data's items is over: tokens that count, or groups. */
double llm_train_total(const llm_training *t, const int64_t *item, int64_t n);
/* The items of a step, and which of them are learned: all, or those of a part. */
typedef struct train_step_items {
    const int64_t *item; /* [n], of the data */
    int64_t n, first, end;
} train_step_items;
/* Adds the gradients of items first .. end - 1 of a step that has that total, and sets *sum. On failure, those of some of them
 * may have been added. */
GGL_NODISCARD ggl_status llm_train_learn(llm_training *t, const train_step_items *of, double total,
                                         train_sum *sum, ggl_error *err);
/* Measures only. */
GGL_NODISCARD ggl_status llm_train_measure(llm_training *t, const train_data *d,
                                           const int64_t *item, int64_t n_items, train_sum *sum,
                                           ggl_error *err);
/* Of preferences: measures the probabilities before the training. */
GGL_NODISCARD ggl_status llm_train_look_before(llm_training *t, ggl_error *err);
/* The loss with a teacher, as llm_train_params.loss; ctx: the training. */
ggl_tensor *llm_train_taught(void *ctx, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target);
extern const char *const llm_train_share_input[1];

/* --- recording.c ------------------------------------------------------------------------------ */

/* Fails if the file lacks a sequence. */
GGL_NODISCARD ggl_status llm_train_check_recorded(const llm_training *t, const train_recorded *r,
                                                  ggl_error *err);

/* Records what the teacher says, or finds it in the file, and lets it teach from there. */
GGL_NODISCARD ggl_status llm_train_record_teacher(llm_training *t, ggl_error *err);

/* --- contrast.c ------------------------------------------------------------------------------- */

/* True if the kind is learned through vectors of whole texts, or scores. */
static inline bool llm_train_is_contrast(train_kind kind) {
    return kind == TRAIN_MATCHES || kind == TRAIN_SCORED;
}
/* The same as llm_train_learn and llm_train_measure for these kinds. */
GGL_NODISCARD ggl_status llm_train_contrast(llm_training *t, const train_step_items *of,
                                            double total, train_sum *sum, ggl_error *err);
GGL_NODISCARD ggl_status llm_train_measure_contrast(llm_training *t, const train_data *d,
                                                    const int64_t *item, int64_t n, train_sum *sum,
                                                    ggl_error *err);
/* Drops what the parts of a step share: the model, or the step, is another one from now on. */
void llm_train_contrast_forget(llm_training *t);
/* How many of `left` groups make the next step, which are compared with each other: n_seq, but none is left alone for the step after it. */
static inline int64_t llm_train_step_groups(const llm_training *t, int64_t left) {
    return left <= t->p.n_seq + 1 && left > 1 ? left : left < t->p.n_seq ? left : t->p.n_seq;
}
/* Fails if the model's output cannot be learned through. Needs the trainer. */
GGL_NODISCARD ggl_status llm_train_check_output(const llm_training *t, ggl_error *err);

/* --- measured.c ------------------------------------------------------------------------------- */

/* Counts what could be measured. */
void llm_train_count_held(llm_training *t);
/* Chooses which of it are measured, unless they are chosen. n_learned: tokens from which the training learns, on which it depends what measurements may
 * cost. */
GGL_NODISCARD ggl_status llm_train_choose_measured(llm_training *t, double n_learned,
                                                   ggl_error *err);

/* --- needs.c ------------------------------------------------------------------------------------- */

/* The memory that a training needs, in bytes. */
typedef struct train_memory {
    size_t learn;  /* weights that learn, their gradients, and what the optimizer remembers */
    size_t values; /* between operators, gradients of parts, and what a teacher says */
    size_t model;  /* weights that do not learn */
    size_t teacher, all;
} train_memory;
train_memory llm_train_memory(const llm_training *t);
/* Notes that it is more than there is, and what would take less. With the trainer, and before that, by all weights that are to
 * learn: a machine without room for these may end the program while they are copied. */
void llm_train_note_memory(llm_training *t);
/* The file of which a copy is written, with what was learned. */
const ggl_gguf *llm_train_file(const llm_training *t);
/* That of the eye or the ear, and whether a weight of it learns; NULL: there is none. */
const ggl_gguf *llm_train_eye_file(const llm_training *t);
bool llm_train_eye_learns(const llm_training *t);
/* Fails if it learns, and is written nowhere. */
GGL_NODISCARD ggl_status llm_train_check_eye(const llm_training *t, ggl_error *err);
/* Fails if the files of a run do not fit on their disks. */
GGL_NODISCARD ggl_status llm_train_check_room(const llm_training *t,
                                              const llm_training_run_params *p, ggl_error *err);
/* --- guesses.c -------------------------------------------------------------------------------- */

enum { TRAIN_MOST_GUESSES = 16, TRAIN_GUESSES = 2 }; /* in a chain, and by default */
/* The same as llm_train_learn, each token counting `weight`, and llm_train_measure, for layers that guess. */
GGL_NODISCARD ggl_status llm_train_guess(llm_training *t, const train_data *d, bool learns,
                                         const int64_t *item, int64_t n, double weight,
                                         train_sum *sum, ggl_error *err);
/* Makes t->guesses. Needs the trainer. */
GGL_NODISCARD ggl_status llm_train_guesses_new(llm_training *t, ggl_error *err);
void llm_train_guesses_free(train_guesses *g); /* NULL is fine */

/* --- settings.c ---------------------------------------------------------------------------------- */

/* Sets t->settings: what the bits depend on besides the files. */
GGL_NODISCARD ggl_status llm_train_settings(llm_training *t, ggl_error *err);
/* Fails if llm_training_write would, because of a type. */
GGL_NODISCARD ggl_status llm_train_check_write(const llm_training *t, bool f32, ggl_error *err);

/* Returns the flag of llm-train for a setting, "-b" for n_batch; NULL: it has none. */
const char *llm_train_setting_flag(ggl_str name);
/* Returns the name of llm_train_optimizer_kind k; NULL: there are no more. */
const char *llm_train_optimizer_name(int k);

/* The digests of the model, of its descriptor, of the adapter with which it began, of the teacher and the data; their names; and what is said of another
 * one, and of one where there was none. */
enum { TRAIN_DIGEST_DATA = 4, TRAIN_DIGESTS };
void llm_train_digests(const llm_training *t, uint64_t out[TRAIN_DIGESTS]);
extern const char *const llm_train_digest_name[TRAIN_DIGESTS],
    *const llm_train_digest_other[TRAIN_DIGESTS], *const llm_train_digest_none[TRAIN_DIGESTS];

/* --- group.c: several processes --------------------------------------------------------------- */

/* A step consists of parts (llm_training_params.n_parts), whose gradients are made one by one and added in their order, so that the bits do not
 * depend on which process makes which. All processes then take the step. Rank 0 runs the program; the others follow its orders: to take
 * a step, to go on from where a saved training was, or to end. Nothing but numbers is sent: all have the same model, files and settings, which
 * is checked first. */

typedef enum train_order_kind {
    TRAIN_ORDER_END,
    TRAIN_ORDER_STEP,
    TRAIN_ORDER_RESUME
} train_order_kind;
/* What rank 0 sends to all others. */
typedef struct train_order_sent {
    int64_t kind, n_steps, step, draw, n_tokens, n_updates; /* n_updates: llm_trainer_n_steps */
} train_order_sent;
/* Sends the weights, and what the optimizer remembers of them, or receives them. */
GGL_NODISCARD ggl_status llm_train_move_state(llm_training *t, int rank, bool sends,
                                              ggl_error *err);

/* Checks that all processes are about to do the same. GGL_USAGE: one has another model, other data or settings. */
GGL_NODISCARD ggl_status llm_train_group_begin(llm_training *t, ggl_error *err);
void llm_train_group_end(llm_training *t); /* rank 0: the others end */
/* Tells the others that this process does not begin: rank 0 that they end, another one why. */
void llm_train_group_fail(const train_group *g, const char *why);
/* Rank 0: the others take the next step, too; go on from where this training is. */
GGL_NODISCARD ggl_status llm_train_group_step(llm_training *t, ggl_error *err);
GGL_NODISCARD ggl_status llm_train_group_resume(llm_training *t, ggl_error *err);
/* Adds the gradients of the mean loss over the items, of all parts, by all processes, and sets *sum. */
GGL_NODISCARD ggl_status llm_train_group_learn(llm_training *t, const int64_t *item, int64_t n,
                                               train_sum *sum, ggl_error *err);

/* --- steps.c ---------------------------------------------------------------------------------- */

/* llm_training_step and llm_training_evaluate, which forget a cancel that came before; these do not. */
GGL_NODISCARD ggl_status llm_train_step(llm_training *t, llm_training_report *r, ggl_error *err);
GGL_NODISCARD ggl_status llm_train_evaluate(llm_training *t, double *loss, double *accuracy,
                                            ggl_error *err);
bool llm_train_is_over(const llm_training *t);
bool llm_train_has_time(const llm_training *t); /* of llm_training_params.minutes some is left */
/* Lists the items of so many draws from the first on, which the caller frees. NULL: out of memory. */
int64_t *llm_train_items_of(const llm_training *t, int64_t first, int64_t n_drawn, int64_t *n);
/* A step that rank 0 has ordered. */
GGL_NODISCARD ggl_status llm_train_follow_step(llm_training *t, ggl_error *err);
/* Returns how many steps it takes to see all items so many times. */
int64_t llm_train_count_steps(const llm_training *t, double n_epochs);
/* Returns how many tokens the training learns from, in all its steps; if their number is not known, those of one pass. */
double llm_train_n_learned(const llm_training *t);

#endif
