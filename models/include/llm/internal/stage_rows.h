/* Models whose stages are over rows: of an input that the caller prepares, such as a spectrogram or the patches of a picture
 * (docs/architectures.md, "Stages"). Each stage is a session of its own; what one returns is what the next one reads.
 *
 * Threads: as of a session, one at a time may use an llm_stages. */
#ifndef LLM_STAGE_ROWS_H
#define LLM_STAGE_ROWS_H

#include <stdio.h>

#include "llm/internal/rows_gather.h"
#include "llm/internal/session.h"

struct ggl_memory;

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_stages llm_stages;

/* Makes the stages of the model, for an input of at most n rows; 0: what the descriptor says. params (NULL: the defaults): of a model whose
 * tokens read the last stage, they are those of its session, without .n_read, or with .only, the name of that stage, its rows are wanted
 * (llm_stages_run), and no tokens run; else .n_ctx, .n_ubatch, .n_rows, .n_slots and .only
 * are not used. GGL_USAGE: n is 0, and the descriptor does not say; GGL_UNSUPPORTED: the model has no such stages; else the statuses of
 * llm_session_new and llm_session_alloc. */
GGL_NODISCARD ggl_status llm_stages_new(llm_stages **out, const llm_model *m,
                                        const llm_session_params *params, int64_t n,
                                        ggl_error *err);
/* Makes the stages before the last one, whose session the caller has, for as many rows as the descriptor says; `last` must outlive
 * them. params: those of that session. Statuses of llm_stages_new. */
GGL_NODISCARD ggl_status llm_stages_before(llm_stages **out, const llm_model *m,
                                           const llm_session_params *params, llm_session *last,
                                           ggl_error *err);
/* llm_stages_new and llm_stages_before in two steps: nothing runs, and no memory is taken, until the second one. */
GGL_NODISCARD ggl_status llm_stages_plan(llm_stages **out, const llm_model *m,
                                         const llm_session_params *params, int64_t n,
                                         ggl_error *err);
GGL_NODISCARD ggl_status llm_stages_plan_before(llm_stages **out, const llm_model *m,
                                                const struct llm_session_params *params,
                                                llm_session *last, ggl_error *err);
GGL_NODISCARD ggl_status llm_stages_alloc(llm_stages *s, ggl_error *err);
void llm_stages_free(llm_stages *s); /* NULL is fine */

/* The bytes that all stages take on a backend of params, by index; *out is 0 if there is no such backend. */
void llm_stages_memory(const llm_stages *s, int backend, struct ggl_memory *out);
/* The bytes of the input's rows and of those between stages, for an input of as many rows as there can be. They are in the memory of the CPU. */
size_t llm_stages_row_bytes(const llm_stages *s);
/* Prints where each stage runs, and its memory, as ggl_sched_print does. */
void llm_stages_print(const llm_stages *s, FILE *out, bool nodes);

/* How the input is made of sound; NULL: it is not. */
const llm_arch_sound *llm_stages_sound(const llm_stages *s);
/* The most rows of the input. */
int64_t llm_stages_n_most(const llm_stages *s);

/* Numbers of a row of the input, and of a row of the result. */
int64_t llm_stages_n_input(const llm_stages *s);
int64_t llm_stages_n_row(const llm_stages *s);
/* The session of the last stage: of a model whose tokens read it, that in which they run, and else for its notes, its plan and its
 * sizes. */
llm_session *llm_stages_last(const llm_stages *s);

/* The places of the next input's rows; borrowed until it has run. NULL: all are 0. */
void llm_stages_place(llm_stages *s, const llm_row_places *places);

/* Runs all stages for an input of n rows, [n][n_input], behind which those stand that follow a sound (llm_rows_with_after), and sets *rows, [*n_rows][n_row], valid until the next call: what the
 * descriptor's output `rows` is of each row of the last stage. GGL_LIMIT: n is more than the stages were made for; GGL_USAGE: it is
 * less than 1, or so small that a stage has no rows. */
GGL_NODISCARD ggl_status llm_stages_run(llm_stages *s, const float *input, int64_t n,
                                        const float **rows, int64_t *n_rows, ggl_error *err);
/* True if an input may come piece by piece: each row of each stage sees rows from a fixed number of places before it on, or all earlier ones, up to a fixed
 * number of places behind it. Nothing tokens read, no picture, and no rows in blocks. */
bool llm_stages_can_flow(const llm_stages *s);
/* Begins an input of any number of pieces, which replaces what llm_stages_flow has run so far. GGL_UNSUPPORTED: llm_stages_can_flow is false; and the statuses
 * of llm_session_clear. */
GGL_NODISCARD ggl_status llm_stages_begin(llm_stages *s, ggl_error *err);
/* Runs the stages as far as the next n rows of the input, [n][n_input], allow, n being 0 or more, and sets *rows, [*n_rows][n_row], to the rows of the last stage that were made,
 * valid until the next call. All pieces together make the rows of llm_stages_run, with the same bits; how many rows are kept between two calls
 * does not depend on how many there were. With is_last the input ends. After a failure, only llm_stages_begin and llm_stages_end are allowed. GGL_LIMIT: there are more rows in all than
 * the stages were made for; GGL_USAGE: without llm_stages_begin; GGL_NOMEM; statuses of llm_session_eval. */
GGL_NODISCARD ggl_status llm_stages_flow(llm_stages *s, const float *input, int64_t n, bool is_last,
                                         const float **rows, int64_t *n_rows, ggl_error *err);
/* Ends it at once, and frees what was kept. Until then, llm_stages_run is GGL_USAGE. */
void llm_stages_end(llm_stages *s);
/* Runs all stages for the n rows that the tokens of this slot read from now on; the slot has no tokens afterwards. If a slot has read
 * the same rows already, that is shared, and nothing runs: *is_found; if it is this one, its tokens stay. Statuses of llm_stages_run and
 * llm_session_read_rows. */
GGL_NODISCARD ggl_status llm_stages_read(llm_stages *s, int slot, const float *input, int64_t n,
                                         bool *is_found, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
