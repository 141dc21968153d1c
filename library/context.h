/* What a context of llm/llm.h consists of. */
#ifndef LIBRARY_CONTEXT_H
#define LIBRARY_CONTEXT_H

#include <stdatomic.h>

#include "devices.h"
#include "llm/chat.h"
#include "llm/generate.h"
#include "llm/llm.h"

struct llm_context {
    devices devices;
    const char *placement; /* as llm_context_placement says */
    llm_model *model;
    const llm_tokenizer *tokenizer; /* NULL: the model has none that we know; why_no_tokenizer */
    ggl_error why_no_tokenizer;
    llm_chat *chat; /* NULL: there is no template; why_no_chat */
    ggl_error why_no_chat;
    llm_session *session;
    llm_sampler *sampler; /* of the last generation; the generator holds on to it */
    llm_generator *generator;
    llm_vocab *vocab;              /* made for the first grammar */
    struct generation *generation; /* what llm_begin has begun; NULL: nothing, or it has ended */
    atomic_bool cancelled;
    /* The sequence is the generator's, or, after llm_eval, these: the slot then holds all of them but
     * those from llm_session_n_past on, which the next run has to run. */
    llm_tokens ids;
    bool is_own;
    float *rows; /* [n_rows][n_vocab]: the last logits of llm_eval */
    size_t cap_rows, n_rows;
    const float *logits; /* the last row, of `rows` or the generator's */
    llm_run_info run;
    ggl_arena texts; /* whatever lives as long as it */
};

/* The slot's sequence becomes c->ids, if it is the generator's; wrong guesses are taken out. */
ggl_status context_take(llm_context *c, ggl_error *err);
/* The other way round: the generator goes on from the slot's tokens. */
ggl_status context_give(llm_context *c, ggl_error *err);
/* Frees what llm_begin has begun, if anything. */
void context_end(llm_context *c);

#endif
