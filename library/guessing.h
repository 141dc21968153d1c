/* Guesses of the next tokens, by a smaller model or from earlier text. */
#ifndef LIBRARY_GUESSING_H
#define LIBRARY_GUESSING_H

#include "context.h"
#include "llm/internal/guess.h"

struct guessing;

/* Most tokens that are guessed at once with these parameters; 0 if none are. */
int64_t llm_guessing_n_max(const llm_open_params *p);
/* Opens what guesses for c->session; *out is NULL if there is nothing to guess with, and after a failure. */
ggl_status llm_guessing_open(struct guessing **out, const llm_context *c, const llm_open_params *p,
                             ggl_error *err);
void llm_guessing_close(struct guessing *g); /* after the generator; NULL is fine */
/* Makes a generator for slot 0 of the session, which guesses with c->guessing. */
ggl_status llm_context_make_generator(llm_generator **out, const llm_context *c,
                                      llm_session *session, ggl_error *err);

#endif
