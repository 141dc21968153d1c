/* Changes the rate of a sound from `from` to `to`: a polyphase filter of a windowed sinc.
 *
 * Output m stands at the time m * from / to of the input, counted in its samples, so nothing is delayed; n samples become
 * ceil(n * to / from). The sound is silent before its first sample and after its last. Frequencies up to 0.9 of the lower of the two
 * Nyquist frequencies pass, with an amplitude that is right to 1e-4; what lies above that frequency is 96 dB down or more. The window is Kaiser's, whose
 * width and shape follow from these numbers (Kaiser 1974). Each phase of the filter has the sum 1. The same samples, in parts of any length.
 *
 * A filter for each of to / gcd(from, to) phases, if they are few; otherwise phases are interpolated between the two next to them, of which
 * there are so many that this adds an error of -110 dB at most.
 *
 * Threads: a resampler belongs to one at a time. */
#ifndef LIBRARY_RESAMPLE_H
#define LIBRARY_RESAMPLE_H

#include <stdint.h>

#include "ggl/status.h"

typedef struct llm_resampler llm_resampler;

/* Rates are SOUND_LEAST_RATE to SOUND_MOST_RATE (decoder.h), which the caller has checked. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_resampler_new(llm_resampler **out, int from, int to, ggl_error *err);
void llm_resampler_free(llm_resampler *r); /* NULL is fine */

/* Adds n samples of the input. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_resampler_add(llm_resampler *r, const float *x, int64_t n,
                                           ggl_error *err);
/* The input is complete. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_resampler_end(llm_resampler *r, ggl_error *err);
/* Takes at most n samples of the output; returns their number, 0 until more is added. */
int64_t llm_resampler_take(llm_resampler *r, float *to, int64_t n);
/* Begins again. */
void llm_resampler_reset(llm_resampler *r);

/* The number of output samples for n of the input; -1: too many. */
int64_t llm_resampler_n_output(const llm_resampler *r, int64_t n);

#endif
