#include "mel_stream.h"

#include <string.h>

#include "ggl/internal/alloc.h"

struct llm_mel_stream {
    const llm_mel *m;
    float *
        sample; /* those of the sound from `first` on, of which the first `n_dropped` are not needed */
    size_t cap;
    int64_t first, n, n_dropped;
    int64_t n_measured; /* rows */
    double largest;
    bool ended;
};

ggl_status llm_mel_stream_new(llm_mel_stream **out, const llm_mel *m, ggl_error *err) {
    *out = ggl_calloc(1, sizeof **out);
    if (!*out)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a sound");
    **out = (llm_mel_stream){.m = m, .largest = llm_mel_silence(m)};
    return GGL_OK;
}

void llm_mel_stream_free(llm_mel_stream *s) {
    if (s)
        ggl_free(s->sample);
    ggl_free(s);
}

ggl_status llm_mel_stream_add(llm_mel_stream *s, const float *sample, int64_t n, ggl_error *err) {
    if (s->ended)
        return ggl_fail(err, GGL_USAGE, "samples after the end of a sound");
    if (!ggl_grow(&s->sample, &s->cap, (size_t)(s->n + n), sizeof *s->sample))
        return ggl_fail(err, GGL_NOMEM, "out of memory for %lld samples", (long long)(s->n + n));
    if (n > 0)
        memcpy(s->sample + s->n, sample, (size_t)n * sizeof *sample);
    s->n += n;
    return GGL_OK;
}

void llm_mel_stream_end(llm_mel_stream *s) {
    s->ended = true;
}

bool llm_mel_stream_has_ended(const llm_mel_stream *s) {
    return s->ended;
}

int64_t llm_mel_stream_n_samples(const llm_mel_stream *s) {
    return s->first + s->n;
}

int64_t llm_mel_stream_n_rows(const llm_mel_stream *s) {
    const int64_t n = llm_mel_stream_n_samples(s);
    return s->ended ? llm_mel_n_rows(s->m, n) : llm_mel_n_complete(s->m, n);
}

/* Samples move to the front once as many are gone as stay, so that each moves once on average. */
void llm_mel_stream_drop(llm_mel_stream *s, int64_t first_row) {
    const int64_t drop = llm_mel_first_sample(s->m, first_row) - s->first;
    s->n_dropped = drop > s->n ? s->n : drop > s->n_dropped ? drop : s->n_dropped;
    if (s->n_dropped == 0 || s->n_dropped < s->n - s->n_dropped)
        return;
    s->n -= s->n_dropped;
    s->first += s->n_dropped;
    memmove(s->sample, s->sample + s->n_dropped, (size_t)s->n * sizeof *s->sample);
    s->n_dropped = 0;
}

static llm_mel_piece piece_of(const llm_mel_stream *s) {
    return (llm_mel_piece){.sample = s->sample ? s->sample + s->n_dropped : NULL,
                           .first = s->first + s->n_dropped,
                           .n = s->n - s->n_dropped,
                           .is_last = s->ended};
}

ggl_status llm_mel_stream_measure(llm_mel_stream *s, ggl_error *err) {
    const llm_mel_piece piece = piece_of(s);
    const int64_t n = llm_mel_stream_n_samples(s);
    const int64_t end = s->ended ? llm_mel_n_heard(s->m, n) : llm_mel_n_complete(s->m, n);
    int64_t first = s->n_measured;
    while (first < end && llm_mel_first_sample(s->m, first) < piece.first)
        first++;
    if (first >= end)
        return GGL_OK;
    const ggl_status st = llm_mel_largest(s->m, &piece, first, end - first, &s->largest, err);
    s->n_measured = st == GGL_OK ? end : s->n_measured;
    return st;
}

double llm_mel_stream_largest(const llm_mel_stream *s) {
    return s->largest;
}

ggl_status llm_mel_stream_rows(const llm_mel_stream *s, int64_t first_row, int64_t n_rows,
                               double largest, float *out, ggl_error *err) {
    const llm_mel_piece piece = piece_of(s);
    return llm_mel_rows(s->m, &piece, first_row, n_rows, largest, out, err);
}
