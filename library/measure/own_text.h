/* A text that a model writes by itself, for calibration where the user has no text. Tokens are drawn with the
 * probabilities that the model gives them (temperature 1), so the text is of the kind that the model was trained on.
 *
 *     llm_session_params sp = ..;
 *     llm_own_text_session(&sp, n_ctx);
 *     .. llm_session_new(&s, m, &sp, &err), llm_session_alloc(s, &err) ..
 *     st = llm_own_text_write(&chunks, s, tokenizer, n_chunk, NULL, NULL, &err);
 *     llm_session_free(s);
 *
 * The text depends only on the model, n_ctx and n_chunk: each piece has its number as its seed. */
#ifndef LIBRARY_OWN_TEXT_H
#define LIBRARY_OWN_TEXT_H

#include "llm/internal/session.h"
#include "text_chunks.h"

enum { OWN_TEXT_TOKENS = 16384 }; /* where the user gives no number */

/* Sets the context and the slots of the session that writes. */
void llm_own_text_session(llm_session_params *sp, int64_t n_ctx);
/* Sets c->tokens to n_chunk chunks of c->n_ctx tokens, and c->n_chunk; c->n_ctx and c->bos must be set. The text has
 * pieces that begin with BOS (or EOS, if the model has no BOS) and end with the model's end of text, or after n_ctx
 * tokens; pieces follow one another without regard to chunks. `progress`, which may be NULL, is called with the tokens that are
 * written, of all; false ends it with GGL_CANCELLED. GGL_UNSUPPORTED: the model has no token to begin with. */
ggl_status llm_own_text_write(text_chunks *c, llm_session *s, const llm_tokenizer *t,
                              int64_t n_chunk, bool (*progress)(void *ctx, size_t done, size_t n),
                              void *ctx, ggl_error *err);

#endif
