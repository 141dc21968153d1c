/* Rows (log_mel.h) of a sound that arrives in parts of any length. Only samples that later rows show are kept.
 *
 *     st = llm_mel_stream_new(&s, m, &err);
 *     while (n > 0) {                                                 // a first pass, for the largest value of the sound
 *         st = llm_sound_read(sound, part, N_PART, &n, &err);
 *         st = n > 0 ? llm_mel_stream_add(s, part, n, &err) : llm_mel_stream_end(s);
 *         st = llm_mel_stream_measure(s, &err);
 *         llm_mel_stream_drop(s, llm_mel_stream_n_rows(s));
 *     }
 *     largest = llm_mel_stream_largest(s);
 *
 * Then, with another stream over the same sound, windows of rows, each after the one before:
 *
 *     llm_mel_stream_drop(s, first);
 *     while (n > 0 && llm_mel_stream_n_rows(s) < first + 3000)
 *         .. read and add, or end ..
 *     st = llm_mel_stream_rows(s, first, 3000, largest, rows, &err);
 *
 * A pipe has but one pass: measure, and take the largest value until then.
 *
 * Threads: a stream belongs to one at a time. */
#ifndef LIBRARY_MEL_STREAM_H
#define LIBRARY_MEL_STREAM_H

#include "log_mel.h"

typedef struct llm_mel_stream llm_mel_stream;

/* Borrows m. GGL_NOMEM; *out is then NULL. */
GGL_NODISCARD ggl_status llm_mel_stream_new(llm_mel_stream **out, const llm_mel *m, ggl_error *err);
void llm_mel_stream_free(llm_mel_stream *s); /* NULL is fine */

/* Adds n samples, as llm_mel_piece has them. GGL_NOMEM; GGL_USAGE: the sound has ended. */
GGL_NODISCARD ggl_status llm_mel_stream_add(llm_mel_stream *s, const float *sample, int64_t n,
                                            ggl_error *err);
/* The sound ends here. From now on every row can be computed. */
void llm_mel_stream_end(llm_mel_stream *s);
bool llm_mel_stream_has_ended(const llm_mel_stream *s);
int64_t llm_mel_stream_n_samples(const llm_mel_stream *s); /* that were added */
/* Rows 0 .. n_rows - 1 can be computed, apart from dropped ones. After the end: the rows of the sound, llm_mel_n_rows. */
int64_t llm_mel_stream_n_rows(const llm_mel_stream *s);

/* No row before first_row is wanted any more: forgets the samples that only those show. Samples that have not arrived yet are not skipped:
 * call it again when they have. */
void llm_mel_stream_drop(llm_mel_stream *s, int64_t first_row);

/* Looks for the largest value in all rows that can be computed, and were neither looked at nor dropped. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_mel_stream_measure(llm_mel_stream *s, ggl_error *err);
double llm_mel_stream_largest(const llm_mel_stream *s); /* silence, if nothing was measured */

/* Sets out[n_rows][n_mel]. GGL_USAGE: rows that were dropped, or whose samples have not arrived; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_mel_stream_rows(const llm_mel_stream *s, int64_t first_row,
                                             int64_t n_rows, double largest, float *out,
                                             ggl_error *err);

#endif
