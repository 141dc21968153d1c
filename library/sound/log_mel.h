/* Rows of a log-mel spectrogram, which speech models read in place of samples.
 *
 * Row r shows n_window samples around sample r * n_step of a sound x:
 *
 *     w[i]  = 0.5 - 0.5 cos(2 pi i / n_window)                        Hann's window, periodic; or symmetric: n_window - 1; or one that is given
 *     s[i]  = x(r * n_step - n_window / 2 + i) * w[i]                 x(-j) = x(j); 0 after the sound's end; or as `edges` says
 *     P[k]  = |sum_i s[i] exp(-2 pi i k / n_fft)|^2                   k = 0 .. n_fft / 2; or without the square
 *     L[b]  = log10(max(sum_k filter[b][k] P[k], least))              b = 0 .. n_mel - 1; or the natural logarithm; or of the sum plus least
 *     row[b] = (max(L[b], largest - range) + offset) / scale
 *
 * With `emphasis`, x(i) - emphasis * x(i - 1) takes the place of each sample but the first.
 *
 * `largest` is the largest L of the whole sound. It is known after a first pass; for a sound that is heard only once, a pipe, the largest
 * until then takes its place. All is computed in double, and has the same bits on every machine; the rows are floats.
 *
 * The mirrored beginning and the zeros after the end are those of the program published with the first of these models, which appends
 * 30 s of silence before it computes anything, so there are rows after the end, as many as are asked for. The filters that are computed
 * here are those of common/mel_bands.h.
 *
 *     llm_mel_params p = llm_mel_default();
 *     p.n_mel = 128;
 *     st = llm_mel_new(&m, &p, &err);
 *     st = llm_mel_rows(m, &(llm_mel_piece){.sample = x, .n = n, .is_last = true}, 0, 3000, largest, rows, &err);
 *
 * A sound of which only a part is in memory: mel_stream.h.
 *
 * Threads: any number may compute rows of one llm_mel at the same time. */
#ifndef LIBRARY_LOG_MEL_H
#define LIBRARY_LOG_MEL_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/status.h"

enum { MEL_MOST_WINDOW = 4096, MEL_MOST_BANDS = 4096 };

/* Which samples stand for those before the first and after the last one of a sound. */
typedef enum llm_mel_edges {
    MEL_EDGE_BEGIN, /* the sound, mirrored in its first sample, before it; zeros after it */
    MEL_EDGE_BOTH,  /* also mirrored in its last one, for half a window */
    MEL_EDGE_ZEROS
} llm_mel_edges;

typedef struct llm_mel_params {
    int rate;     /* samples per second: the filters that are computed need it; at least 1 */
    int n_window; /* samples of a window: even, 2 .. MEL_MOST_WINDOW */
    int n_fft;    /* even, n_window .. MEL_MOST_WINDOW: zeros follow the window; 0: n_window */
    int n_step;   /* samples from a row to the next, at least 1 */
    int n_mel;    /* bands, 1 .. MEL_MOST_BANDS */
    const float *filter; /* [n_mel][n_fft / 2 + 1], copied; NULL: computed, up to rate / 2 */
    const float *window; /* [n_window], copied; NULL: Hann's */
    bool htk;            /* bands of HTK's, not of Slaney's */
    llm_mel_edges edges;
    bool symmetric;  /* Hann's window is */
    bool magnitude;  /* |..| in place of its square */
    bool natural;    /* logarithm */
    bool added;      /* `least` is, in place of the larger one of the two */
    double emphasis; /* 0: none */
    double least;    /* power of silence, above 0 */
    double range;    /* from the largest logarithm to the smallest; not negative, may be infinite */
    double offset, scale;
} llm_mel_params;

/* 16 kHz, windows of 400 samples each 160, 80 bands of Slaney's, least 1e-10, range 8, offset and scale 4. */
llm_mel_params llm_mel_default(void);

typedef struct llm_mel llm_mel;

/* GGL_USAGE: a parameter outside of its limits, or a filter's number that is not finite; GGL_NOMEM. *out is then NULL. */
GGL_NODISCARD ggl_status llm_mel_new(llm_mel **out, const llm_mel_params *p, ggl_error *err);
void llm_mel_free(llm_mel *m); /* NULL is fine */
/* Its filter is NULL. */
const llm_mel_params *llm_mel_params_of(const llm_mel *m);

/* A piece of a sound: its samples first .. first + n - 1, one channel, finite, of -1 to 1 at full volume. */
typedef struct llm_mel_piece {
    const float *sample; /* [n], borrowed; may be NULL if n is 0 */
    int64_t first, n;
    bool is_last; /* the sound ends with this piece */
} llm_mel_piece;

/* The whole steps of a sound, which count as its rows: n_samples / n_step. Later rows show its end, and silence. */
int64_t llm_mel_n_rows(const llm_mel *m, int64_t n_samples);
/* The number of rows that show at least one of the samples. All others are silent, and change no largest value. */
int64_t llm_mel_n_heard(const llm_mel *m, int64_t n_samples);
/* The number of rows, from row 0 on, for which the first n_samples of a longer sound are enough. */
int64_t llm_mel_n_complete(const llm_mel *m, int64_t n_samples);
/* The first sample that row `row` needs. */
int64_t llm_mel_first_sample(const llm_mel *m, int64_t row);

/* Sets *largest to the largest L of these rows, or leaves it if it is larger. Begin with llm_mel_silence(m). GGL_USAGE: the piece lacks
 * samples that the rows show; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_mel_largest(const llm_mel *m, const llm_mel_piece *piece,
                                         int64_t first_row, int64_t n_rows, double *largest,
                                         ggl_error *err);
/* Sets out[n_rows][n_mel] to rows first_row .. first_row + n_rows - 1. Fails as llm_mel_largest does. */
GGL_NODISCARD ggl_status llm_mel_rows(const llm_mel *m, const llm_mel_piece *piece,
                                      int64_t first_row, int64_t n_rows, double largest, float *out,
                                      ggl_error *err);
/* The L of silence: log10(least). */
double llm_mel_silence(const llm_mel *m);
/* Returns the number that all bands of a silent row have, as llm_mel_rows writes it. */
float llm_mel_silent_number(const llm_mel *m, double largest);

#endif
