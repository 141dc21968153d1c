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
    int32_t start; /* of such a model: the token with which it begins to write */
    const char *
        prefix; /* of the names of the inputs of texts: "", or "stage." if only these are computed */
    int at_logits, at_embedding, at_score,
        at_rows;    /* indices of the graph's outputs; -1: it lacks it */
    bool guesses;   /* its logits are guesses, made from tokens and the rows of those before them */
    bool tells;     /* it computes the output "rows" for all tokens (llm_session_hear) */
    float *given;   /* [n_ubatch][built.n_row]: these rows; NULL: it makes no guesses */
    float *feature; /* [n_ubatch][built.n_feature]: another model's; NULL: it reads none */
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

/* Saves the first n_past tokens of a slot as llm_session_save does. Fewer than the slot has are
 * possible if its model has no states and no rings. */
ggl_status llm_slot_save(llm_session *s, int slot, int64_t n_past, bool states_only, void **data,
                         size_t *size, ggl_error *err);

#endif
