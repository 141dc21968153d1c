/* What a context of llm/llm.h consists of. */
#ifndef LIBRARY_CONTEXT_H
#define LIBRARY_CONTEXT_H

#include <stdatomic.h>

#include "llm/internal/chat.h"
#include "llm/internal/generate.h"
#include "llm/llm.h"
#include "llm/internal/pooling.h"
#include "place/placement.h"

struct llm_context {
    llm_placement *placement;
    llm_model *model;
    const llm_tokenizer *tokenizer; /* NULL: the model has none that we know; why_no_tokenizer */
    ggl_error why_no_tokenizer;
    llm_chat *chat; /* NULL: there is no template; why_no_chat */
    ggl_error why_no_chat;
    llm_pooling pooling;               /* of embeddings */
    llm_session_params session_params; /* with which `session` was made */
    llm_session *session;
    llm_adapter_use *adapter; /* [n_adapters] */
    size_t n_adapters;
    struct guessing *guessing; /* NULL: nothing is guessed */
    llm_sampler *sampler;      /* of the last generation; the generator still refers to it */
    llm_generator *generator;
    llm_vocab *vocab;              /* made for the first grammar */
    struct generation *generation; /* started by llm_begin; NULL: none, or it has ended */
    atomic_bool cancelled;
    /* The sequence belongs to the generator, or after llm_eval it is `ids`. The slot then holds the first
     * llm_session_n_past of them; the next run runs the others. */
    llm_tokens ids;
    bool is_own;
    float *rows; /* [n_rows][n_vocab]: the last logits of llm_eval */
    size_t cap_rows, n_rows;
    const float *logits; /* the last row, of `rows` or the generator's */
    llm_run_info run;
    int64_t n_guessed, n_right; /* of the generator, before the last generation */
};

/* Opens a model by path, or one that is built in; arch: as llm_open_params.arch. */
ggl_status llm_context_load(llm_model **out, const char *path, const char *arch,
                            const llm_open_params *p, ggl_error *err);
/* Moves the sequence from the generator to c->ids, if the generator has it, and removes wrong guesses. */
ggl_status llm_context_take(llm_context *c, ggl_error *err);
/* Moves the sequence back to the generator, which continues from the slot's tokens. */
ggl_status llm_context_give(llm_context *c, ggl_error *err);
/* Empties the sequence, which llm_context_take has taken. */
ggl_status llm_context_clear(llm_context *c, ggl_error *err);
/* The sequence, which llm_context_take has taken, becomes these tokens, which the slot holds already. */
ggl_status llm_context_set(llm_context *c, const int32_t *id, size_t n, ggl_error *err);
/* Runs the tokens of the sequence, which llm_context_take has taken, that have not run, and keeps the logits of the last
 * n_rows of them. */
ggl_status llm_context_run(llm_context *c, size_t n_rows, ggl_error *err);
/* Every call that generates begins with this: it ends what llm_begin has begun. Only here is a cancel forgotten, so one
 * that comes while the prompt is formatted or tokenized has its effect. */
void llm_context_start(llm_context *c);
/* llm_begin, after llm_context_start. */
ggl_status llm_context_begin(llm_context *c, const int32_t *id, size_t n,
                             const llm_generate_params *params, ggl_error *err);
/* Frees the generation that llm_begin started, if there is one. */
void llm_context_end(llm_context *c);

#endif
