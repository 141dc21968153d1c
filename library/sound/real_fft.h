/* The power spectrum of windows of real numbers: |sum_i x[i] exp(-2 pi i k / n)|^2. REAL_FFT_LANES windows are computed at once, side by
 * side, so that the compiler makes vectors of them; no window's result depends on the others.
 *
 * n real numbers are taken as n / 2 complex ones, whose transform is split afterwards (Cooley, Lewis and Welch 1970). The complex
 * transform is Stockham's, for any factors: a window of 400 goes as 200 = 5 * 5 * 4 * 2. A prime factor p costs p operations for each
 * number, so a window whose half is a prime takes quadratic time. The same bits on every machine.
 *
 * Threads: any number may use a transform at the same time, each with memory of its own. */
#ifndef LIBRARY_REAL_FFT_H
#define LIBRARY_REAL_FFT_H

#include "ggl/status.h"

enum { REAL_FFT_LANES = 4, REAL_FFT_MOST = 4096 };

typedef struct real_fft {
    int n; /* numbers of a window: even */
    int n_factor, factor[12];
    double *root; /* [n][2]: cosine and sine of -2 pi k / n */
} real_fft;

/* n: even, 2 .. REAL_FFT_MOST, which the caller has checked. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_real_fft_init(real_fft *f, int n, ggl_error *err);
void llm_real_fft_fini(real_fft *f);

/* The doubles of `work` that llm_real_fft_power needs. */
size_t llm_real_fft_n_work(const real_fft *f);

/* Sets power[k][lane], k = 0 .. n / 2, to the power spectra of x[i][lane], i = 0 .. n - 1, which it overwrites. */
void llm_real_fft_power(const real_fft *f, double *x, double *work, double *power);

#endif
