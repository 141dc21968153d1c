/* Shared by session.c, session_run.c, session_slots.c and prompt_cache.c. */
#ifndef LLM_SESSION_IMPL_H
#define LLM_SESSION_IMPL_H

#include "llm/internal/session.h"
#include "ggl/internal/gguf.h"
#include "slot_table.h"

/* A token of which outputs are wanted: its number in the batch, and in the ubatch. */
typedef struct wanted_row {
    int64_t i, at;
    bool logits, embedding, score;
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
    bool is_embedded; /* embeddings alone: no logits are computed */
    void (*each)(void *ctx, int64_t i, const float *logits);
    void (*each_embedding)(void *ctx, int64_t i, const float *embedding);
    void (*each_score)(void *ctx, int64_t i, const float *score);
    void (*each_row)(void *ctx, int64_t i, const float *row);
    void *ctx;
} session_flight;

enum { MAX_ROWS_INPUTS = 32 };

struct llm_session {
    ggl_graph *graph;
    ggl_sched *sched;
    llm_arch_result built;
    ggl_host_range *host;
    /* [1 + n_adapters]: identify the files of the model and of its adapters */
    ggl_gguf_identity *identity;
    uint64_t adapters; /* a digest of the adapters and their scales; 0 if none */
    char *cache;       /* name of the cache file; NULL: none */
    char load_notes[400];
    int64_t n_ctx, n_ubatch, n_slots, n_rows;
    int32_t *token, *pos, *slot, *end, *row; /* [n_ubatch]: inputs of the current ubatch */
    /* Tokens read a text, which is in slot n_slots + slot of the graph. [n_ubatch]: where */
    bool reads_text;
    int32_t *read_slot, *read_end;
    int32_t *text; /* [n_slots][n_ctx]: the texts' tokens; NULL: no texts are read */
    int32_t start; /* of such a model: the token with which it begins to write */
    const char *
        prefix; /* of the names of the inputs of texts: "", or "stage." if only these are computed */
    int at_logits, at_embedding, at_score,
        at_rows;    /* indices of the graph's outputs; -1: it lacks it */
    bool guesses;   /* its logits are guesses, made from tokens and the rows of those before them */
    bool tells;     /* it computes the output "rows" for all tokens (llm_session_hear) */
    float *given;   /* [n_ubatch][built.n_row]: these rows; NULL: it makes no guesses */
    float *feature; /* [n_ubatch][built.n_feature]: another model's; NULL: it reads none */
    /* Of params.given, [n_ubatch][built.n_given] and [n_ubatch]: rows in place of tokens, and 1 where they count; NULL */
    float *put, *is_put;
    llm_rows_input input[MAX_ROWS_INPUTS]; /* of a stage over rows */
    int n_inputs;
    int64_t n_tasks;      /* of adapters for tasks; 0: there are none */
    float *task;          /* [n_ubatch][n_tasks]: 1: the token is of the task */
    float *is_given;      /* [n_ubatch]: 1: given counts, 0: feature does */
    int32_t mask;         /* of blocks of guesses */
    int32_t *guess_token; /* [built.guess.n]; NULL: all tokens */
    void (*hear)(void *ctx, int slot, int64_t pos, int32_t token, const float *row);
    void *hear_ctx;
    session_flight *flight; /* [n_lanes] */
    int n_lanes;
    slot_table slots;
    int (*place)(void *ctx, int layer, int n_layer, const char *weight); /* from the params */
    void *place_ctx;
    const float *logits;
};

/* The slot of the graph in which the text is that the slot's tokens read. */
static inline int llm_text_slot(const llm_session *s, int slot) {
    return (int)s->n_slots + slot;
}

/* Saves the first n_past tokens of a slot as llm_session_save does. Fewer than the slot has are
 * possible if its model has no states and no rings. */
ggl_status llm_slot_save(llm_session *s, int slot, int64_t n_past, bool states_only, void **data,
                         size_t *size, ggl_error *err);
/* Sets *out: whether these bytes are a saved slot whose tokens read this text (n 0: none). Statuses of llm_session_restore. */
ggl_status llm_slot_has_text(const llm_session *s, const void *data, size_t size,
                             const int32_t *token, int64_t n, bool *out, ggl_error *err);

#endif
