/* test-mel PARAMETERS FILTERS SAMPLES PART FIRST N OUT: rows of a log-mel spectrogram, in two passes over a sound that comes in parts.
 *
 * PARAMETERS: rate,n_window,n_step,n_mel,range, and then, or not, n_fft,htk,magnitude,natural,added,edges,symmetric,emphasis; FILTERS: a file of floats, or "" for those that are computed; SAMPLES: a file of floats; PART:
 * how many samples come at a time, at most; rows FIRST .. FIRST + N - 1 are written to OUT, as floats, in windows of at most 50. The same
 * rows are computed from the whole sound at once: other bits are an error. Exit code 0, or 1 with a message.
 *
 * test-mel --time SECONDS: the time for so much noise, with the parameters of the default. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sound/mel_stream.h"

enum { WINDOW = 50 };

typedef struct sound {
    float *sample;
    int64_t n, at, part;
} sound;

static float *read_floats(const char *path, int64_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = ftell(f) / (long)sizeof(float);
    rewind(f);
    float *x = malloc((size_t)*n * sizeof *x + 1);
    if (x && fread(x, sizeof *x, (size_t)*n, f) != (size_t)*n)
        *n = 0;
    fclose(f);
    return x;
}

/* Adds the next samples, 0 to `part` of them, or ends the stream. */
static ggl_status advance(sound *x, llm_mel_stream *s, ggl_error *err) {
    const int64_t wanted = x->part * (x->at % 7 + 1) / 7, left = x->n - x->at;
    const int64_t n = wanted < 1 ? 1 : wanted < left ? wanted : left;
    if (left == 0) {
        llm_mel_stream_end(s);
        return GGL_OK;
    }
    const ggl_status st = llm_mel_stream_add(s, x->sample + x->at, n, err);
    x->at += n;
    return st;
}

static ggl_status find_largest(sound *x, const llm_mel *m, double *largest, ggl_error *err) {
    llm_mel_stream *s;
    ggl_status st = llm_mel_stream_new(&s, m, err);
    while (st == GGL_OK && !llm_mel_stream_has_ended(s)) {
        st = advance(x, s, err);
        if (st == GGL_OK)
            st = llm_mel_stream_measure(s, err);
        llm_mel_stream_drop(s, llm_mel_stream_n_rows(s));
    }
    *largest = s ? llm_mel_stream_largest(s) : 0;
    llm_mel_stream_free(s);
    return st;
}

static ggl_status write_rows(sound *x, const llm_mel *m, double largest, int64_t first, int64_t n,
                             const char *path, ggl_error *err) {
    const size_t n_mel = (size_t)llm_mel_params_of(m)->n_mel;
    const llm_mel_piece whole = {.sample = x->sample, .n = x->n, .is_last = true};
    float *row = calloc(WINDOW * n_mel, sizeof *row), *again = calloc(WINDOW * n_mel, sizeof *row);
    llm_mel_stream *s;
    FILE *f = fopen(path, "wb");
    ggl_status st = llm_mel_stream_new(&s, m, err);
    if (st == GGL_OK && !(f && row && again))
        st = ggl_fail(err, GGL_IO, "no memory, or no file %s", path);
    for (int64_t i = 0; i < n && st == GGL_OK; i += WINDOW) {
        const int64_t some = n - i < WINDOW ? n - i : WINDOW, at = first + i;
        while (st == GGL_OK && !llm_mel_stream_has_ended(s) &&
               llm_mel_stream_n_rows(s) < at + some) {
            llm_mel_stream_drop(s, at);
            st = advance(x, s, err);
        }
        if (st == GGL_OK)
            st = llm_mel_stream_rows(s, at, some, largest, row, err);
        if (st == GGL_OK)
            st = llm_mel_rows(m, &whole, at, some, largest, again, err);
        if (st == GGL_OK && memcmp(row, again, (size_t)some * n_mel * sizeof *row) != 0)
            st = ggl_fail(err, GGL_FORMAT, "other bits in parts, rows from %lld on", (long long)at);
        if (st == GGL_OK)
            fwrite(row, sizeof *row * n_mel, (size_t)some, f);
    }
    llm_mel_stream_free(s);
    free(row);
    free(again);
    return f && fclose(f) == 0 ? st : GGL_IO;
}

static ggl_status run(char **argv, ggl_error *err) {
    llm_mel_params p = llm_mel_default();
    sound x = {.part = atoll(argv[4])};
    int64_t n_filter = 0;
    llm_mel *m = NULL;
    double largest = 0, again;
    float *const filter = read_floats(argv[2], &n_filter);
    x.sample = read_floats(argv[3], &x.n);
    p.filter = filter;
    ggl_status st = GGL_OK;
    int htk = 0, magnitude = 0, natural = 0, added = 0, edges = 0, symmetric = 0;
    const int n = sscanf(argv[1], "%d,%d,%d,%d,%lf,%d,%d,%d,%d,%d,%d,%d,%lf", &p.rate, &p.n_window,
                         &p.n_step, &p.n_mel, &p.range, &p.n_fft, &htk, &magnitude, &natural,
                         &added, &edges, &symmetric, &p.emphasis);
    if (!x.sample || (n != 5 && n != 13))
        st = ggl_fail(err, GGL_USAGE, "wrong arguments");
    p.htk = htk;
    p.magnitude = magnitude;
    p.natural = natural;
    p.added = added;
    p.edges = (llm_mel_edges)edges;
    p.symmetric = symmetric;
    if (st == GGL_OK && filter &&
        n_filter != (int64_t)p.n_mel * ((p.n_fft > 0 ? p.n_fft : p.n_window) / 2 + 1))
        st = ggl_fail(err, GGL_USAGE, "%s: %lld numbers", argv[2], (long long)n_filter);
    if (st == GGL_OK)
        st = llm_mel_new(&m, &p, err);
    if (st == GGL_OK)
        st = find_largest(&x, m, &largest, err);
    again = m ? llm_mel_silence(m) : 0;
    const llm_mel_piece whole = {.sample = x.sample, .n = x.n, .is_last = true};
    if (st == GGL_OK)
        st = llm_mel_largest(m, &whole, 0, llm_mel_n_heard(m, x.n), &again, err);
    if (st == GGL_OK && memcmp(&again, &largest, sizeof again) != 0)
        st = ggl_fail(err, GGL_FORMAT, "another largest value in parts: %.17g and %.17g", largest,
                      again);
    x.at = 0;
    if (st == GGL_OK)
        st = write_rows(&x, m, largest, atoll(argv[5]), atoll(argv[6]), argv[7], err);
    llm_mel_free(m);
    free(x.sample);
    free(filter);
    return st;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ggl_status measure(double length, ggl_error *err) {
    const llm_mel_params p = llm_mel_default();
    llm_mel *m = NULL;
    double largest = 0, begin;
    llm_mel_piece x = {.n = (int64_t)(length * p.rate), .is_last = true};
    float *sample = malloc((size_t)x.n * sizeof *sample + 1);
    const int64_t n = x.n / p.n_step;
    float *row = malloc((size_t)(n * p.n_mel) * sizeof *row + 1);
    ggl_status st = sample && row ? llm_mel_new(&m, &p, err) : GGL_NOMEM;
    for (int64_t i = 0; i < x.n && sample; i++)
        sample[i] = (float)sin(0.01 * (double)i * (1 + (double)i * 1e-5));
    x.sample = sample;
    for (int turn = 0; turn < 3 && st == GGL_OK; turn++) {
        begin = seconds();
        st = llm_mel_largest(m, &x, 0, n, &largest, err);
        const double middle = seconds();
        if (st == GGL_OK)
            st = llm_mel_rows(m, &x, 0, n, largest, row, err);
        printf("%lld rows: largest value %.1f ms, rows %.1f ms\n", (long long)n,
               1e3 * (middle - begin), 1e3 * (seconds() - middle));
    }
    llm_mel_free(m);
    free(sample);
    free(row);
    return st;
}

int main(int argc, char **argv) {
    ggl_error err = {.msg = "failed"};
    ggl_status st = GGL_USAGE;
    if (argc == 3 && strcmp(argv[1], "--time") == 0)
        st = measure(atof(argv[2]), &err);
    else if (argc == 8)
        st = run(argv, &err);
    if (st != GGL_OK)
        fprintf(stderr, "test-mel: %s\n", err.msg);
    return st == GGL_OK ? 0 : 1;
}
