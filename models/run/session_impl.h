/* Shared by the files session*.c and prompt_cache.c. */
#ifndef LLM_SESSION_IMPL_H
#define LLM_SESSION_IMPL_H

#include "llm/internal/media.h"
#include "llm/internal/session.h"
#include "ggl/internal/gguf.h"
#include "slot_table.h"

/* --- session_inputs.c, session_outputs.c: two tables of what a session gives its graph for each token, and takes from it --- */

/* An element of a ubatch. */
typedef struct session_element {
    int64_t i;                    /* its number in the batch, or in the text that others read */
    int32_t id, token, slot, pos; /* id below 0: a row of llm_session_params.media; token is 0 */
    uint32_t wanted;              /* 1 << session_output, of each that is wanted */
} session_element;

/* All tokens of the ubatch are appended to their slots (slot_table.n_new), and none has started. */
typedef struct session_token {
    llm_session *s;
    const llm_batch *b; /* NULL: it is in a text that others read */
    const session_element *e;
    int64_t n; /* numbers of the input for each token */
    int axis;  /* of its row of the table */
} session_token;

/* An input of tokens, i32 or f32, which the session gives if its graph reads it: one number, or some. */
typedef struct session_input {
    const char *name;
    bool of_text; /* a text that tokens read has its own, with "stage." before the name */
    /* Checks what any session is given, which is not empty; and token i of a session with this input. NULL: nothing to check. */
    ggl_status (*accept)(const llm_session *s, const llm_batch *b, ggl_error *err);
    ggl_status (*check)(const llm_session *s, const llm_batch *b, int64_t i, ggl_error *err);
    int32_t (*number)(const session_token *x);
    const float *(*values)(const session_token *x); /* [x->n]; NULL: none, and none count */
    int axis;                                       /* of a place: LLM_PLACE_T .. */
} session_input;

enum { LLM_MAX_TOKEN_INPUTS = 32 }; /* a longer table does not compile */

/* In the order in which a token's are given. */
typedef enum session_output {
    LLM_OUT_EMBEDDING,
    LLM_OUT_ROWS, /* what the next guess reads, or llm_session_hear tells */
    LLM_OUT_SCORE,
    LLM_OUT_ALIGNMENT,
    LLM_OUT_LOGITS, /* or guesses */
    LLM_N_OUTPUTS
} session_output;

/* A ubatch under way, and to whom its results are given. */
typedef struct session_flight {
    uint64_t ticket;          /* of the scheduler; 0 if none */
    session_element *element; /* [n], of at most n_ubatch */
    int64_t n;
    int32_t *row; /* [n_rows], of at most session.n_rows: elements of which something is wanted */
    int64_t n_rows;
    bool is_early; /* the rest of the outputs is not computed (ggl_sched_params.early) */
    llm_batch of;  /* once it is submitted, its arrays may be gone, but not its functions */
} session_flight;

struct llm_session {
    ggl_graph *graph;
    ggl_sched *sched;
    llm_arch_result built;
    ggl_host_range *host;
    /* [n_identities]: identify the files of the model and of its adapters that change weights */
    ggl_gguf_identity *identity;
    size_t n_identities;
    uint64_t adapters;       /* a digest of the adapters and their scales; 0 if none */
    char adapters_text[300]; /* of llm_session_adapters_text */
    char *cache;             /* name of the cache file; NULL: none */
    char load_notes[400];
    int64_t n_ctx, n_ubatch, n_slots, n_rows;
    /* By the rows of their table; NULL: the graph has no such input. stage_inputs: of the text, or the rows, that tokens read. */
    const ggl_tensor *inputs[LLM_MAX_TOKEN_INPUTS], *stage_inputs[LLM_MAX_TOKEN_INPUTS];
    int output[LLM_N_OUTPUTS]; /* indices of the graph's outputs; -1: it lacks it */
    uint32_t early; /* outputs after which a run may end, if no others are wanted; 0: none */
    /* Tokens read a text, or rows of numbers, which are in slot n_slots + slot of the graph. */
    bool reads_text;
    int64_t n_read; /* most tokens of the text, or rows of the stage */
    /* [n_slots][n_id]: what the slots' tokens read: a text's tokens, or what identifies rows; NULL: they read nothing */
    int32_t *read_id;
    int64_t n_id;
    int32_t start;      /* of such a model: the token with which it begins to write */
    const char *prefix; /* of names of inputs: "", or "stage." if only a stage is computed */
    bool guesses; /* its logits are guesses, made from tokens and the rows of those before them */
    bool tells;   /* it computes the output "rows" for all tokens (llm_session_hear) */
    llm_media *media; /* of the params: rows that stand for tokens; NULL: none do */
    /* [n_slots * n_ctx]: what the places of the element behind each follow from, and the row that is added to each. NULL: the model has no places, and adds no rows */
    llm_places *places;
    llm_rows_input input[LLM_MAX_ROWS_INPUTS]; /* of a stage over rows */
    int n_inputs;
    int64_t n_tasks;             /* of adapters for tasks; 0: there are none */
    float *share;                /* [n_tasks]: those of tokens without their own */
    int32_t mask;                /* of blocks of guesses */
    int32_t *guess_token;        /* [built.guess.n]; NULL: all tokens */
    uint32_t *writable;          /* llm_session_writable */
    size_t n_unknown_suppressed; /* tokens that the file suppresses, and the logits lack */
    void (*hear)(void *ctx, int slot, int64_t pos, int32_t token, const float *row);
    void *hear_ctx;
    session_flight *flight; /* [n_lanes] */
    int n_lanes;
    double batch_cost; /* from the params */
    slot_table slots;
    int (*place)(void *ctx, int layer, int n_layer, const char *weight); /* from the params */
    void *place_ctx;
    const float *logits;
};

/* --- suppressed.c --- */

/* Sets s->writable by the file. GGL_FORMAT: its key is no list of tokens; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_session_find_suppressed(llm_session *s, const ggl_gguf *file,
                                                     ggl_error *err);
/* Adds to s->load_notes how many tokens of the key there are not. */
void llm_session_note_suppressed(llm_session *s);

/* --- */

static inline int llm_batch_slot(const llm_batch *b, int64_t i) {
    return b->slot ? b->slot[i] : 0;
}

static inline bool llm_has_output(const llm_session *s, int output) {
    return s->output[output] >= 0;
}

/* The slot of the graph in which the text is that the slot's tokens read. */
static inline int llm_text_slot(const llm_session *s, int slot) {
    return (int)s->n_slots + slot;
}

static inline bool llm_session_reads_rows(const llm_session *s) {
    return s->reads_text && s->n_inputs > 0;
}

/* Returns how many words of read_id stand for n tokens of a text, or n rows. */
static inline int64_t llm_id_words(const llm_session *s, int64_t n) {
    return n > 0 && s->n_inputs > 0 ? LLM_ROWS_ID : n;
}

static inline int32_t *llm_read_id(const llm_session *s, int slot) {
    return s->read_id + slot * s->n_id;
}

/* Returns how many tokens of a text, or rows, the slot's tokens read. */
static inline int64_t llm_n_read(const llm_session *s, int slot) {
    return s->reads_text ? s->slots.state[llm_text_slot(s, slot)].n_past : 0;
}

/* --- session_inputs.c --- */

const session_input *llm_session_input(int k); /* row k of the table; NULL: it has no more */
void llm_inputs_find(llm_session *s);          /* those that the graph has */
/* Checks what a batch brings, and later its tokens, whose slots and ids are right. */
ggl_status llm_inputs_accept(const llm_session *s, const llm_batch *b, ggl_error *err);
ggl_status llm_inputs_check(const llm_session *s, const llm_batch *b, ggl_error *err);
/* Fills and sets s->inputs or s->stage_inputs for the n elements of a ubatch. */
ggl_status llm_inputs_set(llm_session *s, const ggl_tensor *const *in, const llm_batch *b,
                          const session_element *e, int64_t n, ggl_error *err);
/* Sets the inputs of a stage over rows, which runs in one ubatch of n. */
ggl_status llm_inputs_set_rows(llm_session *s, const float *const *input, int64_t n,
                               ggl_error *err);

/* --- session_outputs.c --- */

/* Finds the outputs that the graph has, and what depends on them. */
void llm_outputs_find(llm_session *s, const llm_session_params *p);
/* Returns which outputs of token i are wanted, as session_element.wanted. */
uint32_t llm_outputs_wanted(const llm_batch *b, int64_t i);
/* Checks that the outputs exist that the batch wants. */
ggl_status llm_outputs_check(const llm_session *s, const llm_batch *b, ggl_error *err);
/* Hands out what a ubatch has computed. */
void llm_outputs_give(llm_session *s, const session_flight *f);

/* --- session_run.c --- */

/* Checks that no batch is under way. */
ggl_status llm_session_check_collected(const llm_session *s, ggl_error *err);

/* --- session_read.c --- */

/* Lets slot dst read what slot src reads. */
ggl_status llm_session_share_read(llm_session *s, int dst, int src, ggl_error *err);

/* --- session_slots.c --- */

/* Saves the first n_past tokens of a slot as llm_session_save does. Fewer than the slot has are
 * possible if its model has no states and no rings. */
ggl_status llm_slot_save(llm_session *s, int slot, int64_t n_past, bool states_only, void **data,
                         size_t *size, ggl_error *err);
/* The first n elements of the slot have other ids than when it was saved: those of rows are was[i], and now id[i]. */
void llm_slot_renumber(llm_session *s, int slot, const int32_t *was, const int32_t *id, int64_t n);
/* True if these bytes are states of this model, undamaged; *n: after so many tokens. */
bool llm_slot_is_states(const llm_session *s, const void *data, size_t size, int64_t *n);
/* Sets *out: whether these bytes are a saved slot whose tokens read this text (n 0: none). Statuses of llm_session_restore. */
ggl_status llm_slot_has_text(const llm_session *s, const void *data, size_t size,
                             const int32_t *token, int64_t n, bool *out, ggl_error *err);

#endif
