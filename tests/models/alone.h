/* A sequence that runs alone, whose tokens a test asks for one after the other (llm_sequence_params.asked). */
#ifndef TESTS_ALONE_H
#define TESTS_ALONE_H

#include "llm/internal/engine.h"
#include "test.h"

typedef struct alone_seq {
    llm_engine *e;
    llm_sequence_params p; /* as which prompts are added: all but the prompt and the callbacks */
    int slot;
    uint64_t id;
    bool has_drawn, is_over;
    int32_t drawn;
    const float *logits; /* from which the last token was drawn */
    llm_end why;
    ggl_error err;
    llm_sequence_stats stats; /* when it is over */
} alone_seq;

static bool alone_on_token(void *ctx, int32_t id, const float *logits) {
    alone_seq *a = ctx;
    a->drawn = id;
    a->logits = logits;
    return a->has_drawn = true;
}

static void alone_on_end(void *ctx, llm_end why, const llm_sequence_stats *stats,
                         const ggl_error *err) {
    alone_seq *a = ctx;
    a->is_over = true;
    a->why = why;
    a->stats = *stats;
    if (err)
        a->err = *err;
}

/* The engine gets as many places as the session has slots. p->sampler, which is borrowed, may be set later. */
static bool alone_open(alone_seq *a, const llm_engine_params *e, const llm_sequence_params *p,
                       ggl_error *err) {
    llm_engine_params own = *e;
    own.size = sizeof own;
    own.n_parallel = (int)llm_session_n_slots(e->session);
    own.n_guessers = e->guesser ? 1 : 0;
    *a = (alone_seq){.p = *p, .slot = p->in_slot > 0 ? p->in_slot - 1 : 0, .is_over = true};
    a->p.size = sizeof a->p;
    a->p.in_slot = a->slot + 1;
    a->p.asked = a->p.ignore_eog = true;
    a->p.token = alone_on_token;
    a->p.ended = alone_on_end;
    return CHECK_OK(llm_engine_new(&a->e, &own, err), err);
}

static void alone_close(alone_seq *a) {
    llm_engine_free(a->e);
    a->e = NULL;
}

/* Ends the sequence, so that its slot may be changed. */
static void alone_end(alone_seq *a) {
    if (!a->is_over)
        llm_engine_cancel(a->e, a->id);
}

static ggl_status alone_step(alone_seq *a, ggl_error *err) {
    const ggl_status st = llm_engine_step(a->e, err);
    if (!a->is_over || a->why != LLM_END_FAILED)
        return st;
    *err = a->err;
    return a->err.status;
}

TEST_UNUSED static llm_sequence_stats alone_stats(const alone_seq *a) {
    return a->is_over ? a->stats : llm_engine_slot(a->e, a->slot).stats;
}

/* Runs a prompt, which may be tokens of the sequence before. */
static ggl_status alone_prompt(alone_seq *a, const int32_t *id, size_t n, ggl_error *err) {
    llm_sequence_params p = a->p;
    alone_end(a);
    p.prompt = id;
    p.n_prompt = n;
    p.ctx = a;
    ggl_status st = llm_engine_add(a->e, &p, &a->id, err);
    a->is_over = st != GGL_OK;
    while (st == GGL_OK && !a->is_over && llm_engine_slot(a->e, a->slot).use != LLM_SLOT_GENERATES)
        st = alone_step(a, err);
    return st;
}

/* Draws a token. *id is -1: the text is complete by its grammar. GGL_LIMIT: the context is full. */
TEST_UNUSED static ggl_status alone_next(alone_seq *a, int32_t *id, ggl_error *err) {
    ggl_status st = GGL_OK;
    *id = -1;
    a->has_drawn = false;
    if (a->is_over)
        return ggl_fail(err, a->why == LLM_END_CONTEXT ? GGL_LIMIT : GGL_USAGE, "it has ended");
    while (st == GGL_OK && !a->has_drawn && !a->is_over)
        st = alone_step(a, err);
    if (a->has_drawn)
        *id = a->drawn;
    return st;
}

TEST_UNUSED static const int32_t *alone_tokens(const alone_seq *a, size_t *n) {
    int64_t n_all;
    const int32_t *id = llm_engine_tokens(a->e, a->slot, &n_all);
    *n = (size_t)n_all;
    return id;
}

#endif
