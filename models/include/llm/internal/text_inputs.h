/* The inputs of a model's graph for one text, where there is no session: for checks of graphs.
 *
 * Threads: as the scheduler. */
#ifndef LLM_TEXT_INPUTS_H
#define LLM_TEXT_INPUTS_H

#include "ggl/sched.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tokens of a text, at positions first .. first + n - 1 of a slot. A model that sees texts whole sees these. A stage that
 * tokens read, reads them, too. */
typedef struct llm_text_inputs {
    const int32_t *token; /* [n] */
    int32_t first, slot;
    int64_t n;
} llm_text_inputs;

/* Writes the values of an input of this name, such as "pos" or "stage.pos", to value[n]. */
void llm_text_input(const llm_text_inputs *x, const char *input, int32_t *value);
/* Sets all inputs of the graph that the scheduler runs; the caller runs it. If tokens read a stage, it has run.
 * scratch: [n]. */
GGL_NODISCARD ggl_status llm_text_inputs_set(const llm_text_inputs *x, ggl_sched *s,
                                             const ggl_graph *g, int32_t *scratch, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
