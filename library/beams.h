/* Beam search: the likeliest of several texts that are written side by side. */
#ifndef LIBRARY_BEAMS_H
#define LIBRARY_BEAMS_H

#include "context.h"

enum { LLM_MAX_BEAMS = 64 };

typedef struct llm_beams_params {
    int32_t n;             /* beams; the session has as many slots at least */
    double length_penalty; /* a text's score is the sum of its log-probabilities / length ^ this */
    bool early;            /* end as soon as n texts have ended */
    int64_t n_max;         /* tokens at most, 1 or more */
    bool ignore_end;       /* tokens that end a text are as others */
} llm_beams_params;

/* Searches the text that follows id[0 .. n), which runs in slot 0, after the text that this slot reads if the model reads one. *out: its
 * *n_out tokens, without one that ends it, to be freed by ggl_free; *has_ended: it has one; *prompt_seconds: what id took. All slots are empty afterwards.
 * GGL_CANCELLED, GGL_FORMAT (logits that are not finite), and as llm_session_eval. */
ggl_status llm_beams_search(llm_context *c, const int32_t *id, size_t n, const llm_beams_params *p,
                            int32_t **out, size_t *n_out, bool *has_ended, double *prompt_seconds,
                            ggl_error *err);

#endif
