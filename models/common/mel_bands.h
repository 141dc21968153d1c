/* Bands of a spectrogram that speech models read unless their file has others: triangles whose corners lie evenly on a scale of pitch. */
#ifndef LLM_MEL_BANDS_H
#define LLM_MEL_BANDS_H

typedef enum llm_mel_scale {
    /* Slaney's (Auditory Toolbox, 1998): linear up to 1000 Hz, 200 / 3 Hz a step, and logarithmic above, 27 steps for a factor of 6.4. Each triangle has the area 1. */
    LLM_MEL_SLANEY,
    LLM_MEL_HTK /* 2595 log10(1 + Hz / 700), as HTK has it. Each triangle has the height 1. */
} llm_mel_scale;

/* Sets out[window / 2 + 1] to the weights of band b of n, from 0 to rate / 2, of windows of an even number of samples. */
void llm_mel_band(llm_mel_scale scale, int rate, int window, int n, int b, double *out);

#endif
