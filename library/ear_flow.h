/* A sound that an ear hears while it comes: samples become rows of the spectrogram, these rows of the ear, and they stand in a text before the sound has ended. */
#ifndef LIBRARY_EAR_FLOW_H
#define LIBRARY_EAR_FLOW_H

#include "noticing.h"

typedef struct ear_flow ear_flow;

/* Checks that a sound may come piece by piece: rows of the ear see earlier samples, and a fixed number of later ones, and are added to the tokens of the text. GGL_UNSUPPORTED, which
 * says why not. */
GGL_NODISCARD ggl_status llm_ear_flow_check(const llm_eye *ear, ggl_error *err);
/* Begins a sound of at most n samples; nobody else may use the ear until it is freed. GGL_NOMEM; statuses of llm_stages_begin. */
GGL_NODISCARD ggl_status llm_ear_flow_new(ear_flow **out, llm_eye *ear, int64_t n, ggl_error *err);
void llm_ear_flow_free(ear_flow *f); /* NULL is fine */
/* The mark that stands for the sound in a text. */
const char *llm_ear_flow_mark(const ear_flow *f);
/* Hears the next n samples, of those of llm_ear_flow_new; with is_last the sound ends, and the silence follows that the ear's descriptor says. Statuses of llm_stages_flow. */
GGL_NODISCARD ggl_status llm_ear_flow_hear(ear_flow *f, const float *sample, int64_t n,
                                           bool is_last, ggl_error *err);
/* How many rows there are so far, and whether that is all. */
int64_t llm_ear_flow_n_rows(const ear_flow *f);
bool llm_ear_flow_has_ended(const ear_flow *f);

#endif
