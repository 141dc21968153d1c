/* Slaney's bands of a spectrogram (Auditory Toolbox, 1998), which speech models read unless their file has others: triangles whose
 * corners lie evenly on a scale that is linear up to 1000 Hz, 200 / 3 Hz a step, and logarithmic above, 27 steps for a factor of 6.4.
 * Each triangle has the area 1. */
#ifndef LLM_MEL_BANDS_H
#define LLM_MEL_BANDS_H

/* Sets out[window / 2 + 1] to the weights of band b of n, from 0 to rate / 2, of windows of an even number of samples. */
void llm_mel_band(int rate, int window, int n, int b, double *out);

#endif
