/* Beam search for one text alone. */
#ifndef LIBRARY_BEAMS_H
#define LIBRARY_BEAMS_H

#include "context.h"
#include "llm/internal/beams.h"

/* Searches the text that follows id[0 .. n), which runs in slot 0, which is empty, after the text that this slot reads if the model reads one;
 * b is new, and has n_beams. *prompt_seconds: what id took. All slots are empty afterwards. GGL_CANCELLED, and as llm_beams_step and
 * llm_session_eval. */
ggl_status llm_context_search(llm_context *c, llm_beams *b, int32_t n_beams, const int32_t *id,
                              size_t n, double *prompt_seconds, ggl_error *err);

#endif
