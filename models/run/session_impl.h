/* Shared by session.c, session_run.c, session_read.c, session_slots.c and prompt_cache.c. */
#ifndef LLM_SESSION_IMPL_H
#define LLM_SESSION_IMPL_H

#include "llm/internal/session.h"
#include "ggl/internal/gguf.h"
#include "slot_table.h"

/* A token of which outputs are wanted: its number in the batch, and in the ubatch. */
typedef struct wanted_row {
    int64_t i, at;
    bool logits, embedding, score, alignment;
} wanted_row;

/* A token whose row is told (llm_session_hear). */
typedef struct told_token {
    int32_t slot, pos, token;
} told_token;

/* A ubatch under way, and to whom its results are given. */
typedef struct session_flight {
    uint64_t ticket; /* of the scheduler; 0 if none */
    wanted_row *row; /* [n_rows], of at most session.n_rows */
    int64_t n_rows;
    int64_t n;        /* tokens; `told` if the session's rows are heard */
    told_token *told; /* [n_ubatch] */
    bool is_early;    /* the rest of the outputs is not computed (ggl_sched_params.early) */
    void (*each)(void *ctx, int64_t i, const float *logits);
    void (*each_embedding)(void *ctx, int64_t i, const float *embedding);
    void (*each_score)(void *ctx, int64_t i, const float *score);
    void (*each_alignment)(void *ctx, int64_t i, const float *share);
    void (*each_row)(void *ctx, int64_t i, const float *row);
    void *ctx;
} session_flight;

struct llm_session {
    ggl_graph *graph;
    ggl_sched *sched;
    llm_arch_result built;
    ggl_host_range *host;
    /* [1 + n_adapters]: identify the files of the model and of its adapters */
    ggl_gguf_identity *identity;
    uint64_t adapters;       /* a digest of the adapters and their scales; 0 if none */
    char adapters_text[300]; /* of llm_session_adapters_text */
    char *cache;             /* name of the cache file; NULL: none */
    char load_notes[400];
    int64_t n_ctx, n_ubatch, n_slots, n_rows;
    int32_t *token, *pos, *slot, *end, *row; /* [n_ubatch]: inputs of the current ubatch */
    /* Tokens read a text, or rows of numbers, which are in slot n_slots + slot of the graph. [n_ubatch]: where */
    bool reads_text;
    int32_t *read_slot, *read_end;
    int64_t n_read; /* most tokens of the text, or rows of the stage */
    /* [n_slots][n_id]: what the slots' tokens read: a text's tokens, or what identifies rows; NULL: they read nothing */
    int32_t *read_id;
    int64_t n_id;
    int32_t start; /* of such a model: the token with which it begins to write */
    const char *
        prefix; /* of the names of the inputs of texts: "", or "stage." if only these are computed */
    int at_logits, at_embedding, at_score, at_alignment,
        at_rows;        /* indices of the graph's outputs; -1: it lacks it */
    bool can_end_early; /* a run may end after the output ggl_sched_params.early */
    bool guesses;   /* its logits are guesses, made from tokens and the rows of those before them */
    bool tells;     /* it computes the output "rows" for all tokens (llm_session_hear) */
    float *given;   /* [n_ubatch][built.n_row]: these rows; NULL: it makes no guesses */
    float *feature; /* [n_ubatch][built.n_feature]: another model's; NULL: it reads none */
    const llm_media *media; /* of the params: rows that stand for tokens; NULL: none do */
    /* [n_ubatch][built.n_given], .. n_given_more, and [n_ubatch]: such rows, and 1 where they count; NULL */
    float *put, *put_more, *is_put;
    int32_t *
        at_place[3]; /* [n_ubatch]: for pos.t, pos.y and pos.x; NULL: the graph has no such input */
    /* [n_slots * n_ctx]: how many places the elements up to this one lie behind its position, because pictures take fewer places than they have
     * rows. NULL: the model has no places */
    int32_t *behind;
    llm_rows_input input[LLM_MAX_ROWS_INPUTS]; /* of a stage over rows */
    int n_inputs;
    int64_t n_tasks;      /* of adapters for tasks; 0: there are none */
    float *task;          /* [n_ubatch][n_tasks]: the shares of each token */
    float *share;         /* [n_tasks]: those of tokens without their own */
    float *is_given;      /* [n_ubatch]: 1: given counts, 0: feature does */
    int32_t mask;         /* of blocks of guesses */
    int32_t *guess_token; /* [built.guess.n]; NULL: all tokens */
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

/* --- session_run.c --- */

/* Checks that no batch is under way. */
ggl_status llm_session_check_collected(const llm_session *s, ggl_error *err);
/* Sets the inputs of the rows with this prefix, from the session's arrays of n tokens. */
ggl_status llm_session_set_text(llm_session *s, const char *prefix, int64_t n, ggl_error *err);
/* Sets the inputs of a stage over rows, which runs in one ubatch of n. */
ggl_status llm_session_set_inputs(llm_session *s, const float *const *input, int64_t n,
                                  ggl_error *err);
/* Sets s->end: the tokens of each slot in the ubatch of n, which fewer of them see where it says so. */
void llm_session_set_ends(llm_session *s, int64_t n);

/* --- session_read.c --- */

/* Lets slot dst read what slot src reads. */
ggl_status llm_session_share_read(llm_session *s, int dst, int src, ggl_error *err);

/* --- session_slots.c --- */

/* Saves the first n_past tokens of a slot as llm_session_save does. Fewer than the slot has are
 * possible if its model has no states and no rings. */
ggl_status llm_slot_save(llm_session *s, int slot, int64_t n_past, bool states_only, void **data,
                         size_t *size, ggl_error *err);
/* Sets *out: whether these bytes are a saved slot whose tokens read this text (n 0: none). Statuses of llm_session_restore. */
ggl_status llm_slot_has_text(const llm_session *s, const void *data, size_t size,
                             const int32_t *token, int64_t n, bool *out, ggl_error *err);

#endif
