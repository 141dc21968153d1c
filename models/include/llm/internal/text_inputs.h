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
 * tokens read gets the text `read`, in the same slot, when first is 0. */
typedef struct llm_text_inputs {
    const int32_t *token; /* [n] */
    int32_t first, slot;
    int64_t n;
    const int32_t *read; /* [n_read]; NULL: the tokens themselves */
    int64_t n_read;
} llm_text_inputs;

/* Returns for how many elements of the batch the text has values of this input, such as "pos" or "stage.pos", and writes
 * them to value[], as many times the input's size, unless that is NULL. Rows of floats are made up. */
int64_t llm_text_input(const llm_text_inputs *x, const ggl_tensor *input, void *value);
/* Sets all inputs that the graph reads, which the scheduler runs; the caller runs it. If tokens read a stage, it has run. */
GGL_NODISCARD ggl_status llm_text_inputs_set(const llm_text_inputs *x, ggl_sched *s,
                                             const ggl_graph *g, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
