/* A text that is generated: its parameters, what chooses its tokens, and the text that was not returned yet.
 * llm_begin has one, and each job of llm_generate_jobs. */
#ifndef LIBRARY_GENERATION_H
#define LIBRARY_GENERATION_H

#include "context.h"
#include "llm/internal/stop.h"

typedef struct generation {
    llm_generate_params p;
    llm_sampler *sampler;
    llm_stop *stop; /* NULL: no texts stop it */
    llm_grammar *grammar;
    llm_matcher *matcher; /* NULL: any text */
    llm_finish finish;    /* LLM_FINISH_NONE: more tokens can be generated */
    int32_t found;        /* index of the text that stopped it; -1: none */
    int64_t n_generated;
    /* [n_waiting] bytes of text. The first n_ready are whole characters and can be returned; the first
     * n_given of these were returned, and must stay until the caller's next call. */
    char *waiting;
    size_t n_waiting, n_ready, n_given, cap;
} generation;

/* Checks the parameters, which may be NULL, and makes what chooses the tokens after the prompt id[0 .. n). Sets *out,
 * unless memory is lacking for it, also on failure. Statuses as of llm_generate. */
ggl_status llm_generation_new(generation **out, llm_context *c, const llm_generate_params *params,
                              const int32_t *id, size_t n, ggl_error *err);
void llm_generation_free(generation *g); /* NULL is fine */

/* Takes a token that was drawn (id less than 0: the grammar allows none). Sets `finish` if it is the last one. */
ggl_status llm_generation_take(generation *g, const llm_context *c, int32_t id, ggl_error *err);
/* True if there are whole characters to return. */
bool llm_generation_has_text(const generation *g);
/* After the end of the text: all of it can be returned. */
void llm_generation_release(generation *g);
/* Drops the text that was returned before, and returns the next piece of *n bytes, valid until the next call;
 * NULL if none. */
const char *llm_generation_give(generation *g, size_t *n);

#endif
