/* Descriptors and models written in a few lines, for the tests of the descriptor language. */
#ifndef ARCH_TEST_H
#define ARCH_TEST_H

#include "llm/internal/arch.h"

/* A descriptor in a few words: `arch t`, `language 1` and the lines of `top` (a line each 3, 4,
 * ..), then token_embd [n_embd, n_vocab] x = token_embd[token] <body> logits = linear(x,
 * token_embd) with n_embd = 8 and n_vocab = 10 of the little model. The caller frees it. */
char *arch_text(const char *top, const char *body);

/* A GGUF file in memory, from lines "key = 1", "key = \"a\"", "key = [1, 2]", "key = [true, false]", "key = true" and
 * "name [8, 10]" (an f32 tensor). The little model's own lines (general.architecture = "t",
 * t.n_embd = 8, tokens, token_embd.weight) are put before it. */
typedef struct model {
    ggl_gguf *file;
    void *data;
} model;
bool model_new(model *m, const char *lines, const char *name);
void model_free(model *m);

/* Parses and builds for a model; on success *graph (may be NULL) is finished and the caller's. The
 * message is err->msg. */
ggl_status arch_build(const char *text, const model *m, ggl_graph **graph, llm_arch_result *result,
                      ggl_error *err);
/* The same in one: arch_text(top, body) for the little model with more lines. The graph can be
 * looked at, not run. */
ggl_status arch_try(const char *top, const char *body, const char *lines, ggl_graph **graph,
                    ggl_error *err);

/* The first node of a graph whose name is this; NULL. */
const ggl_tensor *arch_find(const ggl_graph *g, const char *name);
int arch_count_op(const ggl_graph *g, ggl_op op); /* bodies not included */

#endif
