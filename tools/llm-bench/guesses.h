/* Measures what guesses gain: two contexts over the same weights write the same texts in turns, one with guesses, the other without.
 *
 *     bench_pair *p;
 *     st = bench_pair_open(&p, ctx, &how, options, test, &err);
 *     if (st == GGL_OK)
 *         st = bench_pair_run(p, row, options, &err);
 *     bench_pair_close(p);                          // before ctx */
#ifndef TOOLS_BENCH_GUESSES_H
#define TOOLS_BENCH_GUESSES_H

#include "opening.h"
#include "options.h"

typedef struct bench_pair bench_pair;

/* Reads the files of -f, once for all tests. Returns -1, or the exit code of what was printed. */
int bench_guesses_read(bench_options *o);
/* Opens what writes them: ctx, which has a model with its tokenizer, becomes the context that guesses, and lasts longer than the pair. *how
 * gets the length of the longest text. On failure *out is NULL. GGL_UNSUPPORTED: the model has no tokenizer, or what guesses does not fit it;
 * else as llm_open. */
GGL_NODISCARD ggl_status bench_pair_open(bench_pair **out, llm_context *ctx, llm_opening *how,
                                         bench_options *o, const bench_test *t, ggl_error *err);
/* Writes each text o->reps times in both contexts, the likeliest token each time, and fills in the row's samples and row->guesses. GGL_UNSUPPORTED: the
 * model ends all texts at once. */
GGL_NODISCARD ggl_status bench_pair_run(bench_pair *p, bench_row *row, const bench_options *o,
                                        ggl_error *err);
/* Tokens of the longest text, with its prompt. */
int64_t bench_pair_length(const bench_pair *p);
void bench_pair_close(bench_pair *p); /* NULL is fine */

#endif
