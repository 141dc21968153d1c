/* Opening a model in steps: llm_open takes them all at once, a tool prints something between them. This header is for the tools,
 * which link the static libraries.
 *
 *     llm_opening o = {.loading = {.path = "model.gguf"}, .session = llm_session_default(), ..};
 *     llm_context *c;
 *     st = llm_context_new(&c, &err);
 *     if (st == GGL_OK)
 *         st = llm_context_open(c, &o, LLM_OPENED_MODEL, &err);
 *     .. c->model is there ..
 *     if (st == GGL_OK)
 *         st = llm_context_open(c, &o, LLM_OPENED_ALL, &err);
 *     .. after a failure, c->opened is the step before the one that failed ..
 *     llm_close(c); */
#ifndef LIBRARY_OPENING_H
#define LIBRARY_OPENING_H

#include "context.h"
#include "place/fit.h"

/* Everything that can be said about opening a model. All pointers are borrowed until the last step is taken. */
typedef struct llm_opening {
    llm_loading loading;
    const char *chat_template; /* as llm_open_params */
    bool no_chat_bos;
    bool no_chat;      /* no template is opened */
    bool no_tokenizer; /* nor a tokenizer */
    ggl_backend_params backend;
    llm_placement_choice placement;
    /* Without the members for backends, adapters and `cancelled`. n_ctx 0: as much as fits. n_rows is a minimum */
    llm_session_params session;
    bool n_ctx_is_most; /* as much of session.n_ctx as fits */
    /* Slots besides session.n_slots, for sequences that have ended; -1: as many as are cheap */
    int64_t n_kept_slots;
    int n_guessers;      /* sequences that guess at once; 0: one */
    const char *pooling; /* as llm_open_params */
    const llm_lora *adapter;
    size_t n_adapters;
    llm_guessing_choice guessing;
    /* See llm_fit_others and llm_fitting. NULL: none. */
    double (*taken)(void *ctx, const char *device);
    bool (*refuses)(void *ctx, const llm_fit *fit, int64_t n_ctx, bool is_asked);
    void (*lacks)(void *ctx, const llm_fit *fit, int64_t n_ctx, bool is_asked);
    /* Called when the session was planned, and that of a draft. NULL: none. */
    void (*placed)(void *ctx, const llm_placement *p, const llm_session *s);
    /* Asked between the steps of a run, besides llm_cancel; true ends it with GGL_CANCELLED. NULL: none. */
    bool (*cancelled)(void *ctx);
    void *ctx; /* of these five */
} llm_opening;

/* A context that has nothing yet. llm_close frees it. */
ggl_status llm_context_new(llm_context **out, ggl_error *err);
/* Takes the steps after c->opened, up to `until`. Statuses of llm_open. */
ggl_status llm_context_open(llm_context *c, const llm_opening *o, llm_opened until, ggl_error *err);
/* Makes a context and takes the steps up to `until`, by the parameters of llm_open. */
ggl_status llm_context_open_path(llm_context **out, const char *path, const llm_open_params *params,
                                 llm_opened until, ggl_error *err);
/* Closes what the steps after `to` have opened, at most LLM_OPENED_ADAPTERS, so that they can be taken again, with another
 * session. Status of llm_context_close. */
ggl_status llm_context_return(llm_context *c, llm_opened to, ggl_error *err);
/* llm_close with a status. GGL_IO: the timeline of llm_placement_choice.trace could not be written. c may be NULL. */
ggl_status llm_context_close(llm_context *c, ggl_error *err);

#endif
