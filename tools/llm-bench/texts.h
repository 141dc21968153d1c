/* Models that do more than continue texts: those that see a text whole, and those that read one before they write. */
#ifndef TOOLS_BENCH_TEXTS_H
#define TOOLS_BENCH_TEXTS_H

#include "opening.h"
#include "row.h"

/* Returns why a test measures nothing of the model; "": another test measures the same; NULL: it measures something. */
const char *bench_cannot(const llm_arch *arch, const bench_test *t);

/* Lets a session of the test make vectors or scores, if those are what the model makes. */
void bench_texts_session(llm_opening *how, const llm_arch *arch, const bench_test *t);

/* True if the session makes vectors or scores, so that bench_embed measures it. */
bool bench_embeds(const llm_session *s);

/* Makes vectors or scores of t->n_sequences texts of t->n_prompt tokens each, all of the same tokens. */
GGL_NODISCARD ggl_status bench_embed(llm_session *s, const bench_test *t, const int32_t *token,
                                     ggl_error *err);

/* Lets a slot read a text before it writes: the prompt, or without one the tokens of the depth, or one token. */
GGL_NODISCARD ggl_status bench_read(llm_session *s, const bench_test *t, int slot,
                                    const int32_t *token, ggl_error *err);

#endif
