/* Sound that a model hears: hearing.h. */
#include "hearing.h"

#include <string.h>

#include "ggl/internal/alloc.h"

enum { PART = 4096 }; /* samples, on the stack of a thread that may have little of it */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for sound");
}

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status open_mel(hearing *h, ggl_error *err) {
    const ggl_status st = llm_sound_rows_mel(&h->mel, h->how, h->n_mel, err);
    h->rows = ggl_calloc((size_t)(h->n_window * h->n_mel), sizeof *h->rows);
    return st == GGL_OK && !h->rows ? no_memory(err) : st;
}

int64_t llm_hearing_rows_in(const hearing *h, double seconds) {
    return (int64_t)(seconds * (double)h->how->rate / (double)h->how->step + 0.5);
}

double llm_hearing_seconds(const hearing *h, int64_t rows) {
    return (double)rows * (double)h->how->step / (double)h->how->rate;
}

/* --- listening -------------------------------------------------------------------------------- */

/* Reads a part of the sound into the stream. */
static ggl_status listen(hearing *h, ggl_error *err) {
    float part[PART];
    int64_t n = 0;
    if (llm_context_is_cancelled(h->c))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    const ggl_status st = llm_sound_read(h->sound, part, PART, &n, err);
    if (st != GGL_OK)
        return st;
    if (n > 0)
        return llm_mel_stream_add(h->stream, part, n, err);
    llm_mel_stream_end(h->stream);
    return GGL_OK;
}

/* Finds the largest value of a sound that can be read twice. */
static ggl_status measure(hearing *h, ggl_error *err) {
    ggl_status st = llm_mel_stream_new(&h->stream, h->mel, err);
    h->largest = llm_mel_silence(h->mel);
    if (st != GGL_OK || !llm_sound_can_rewind(h->sound))
        return st;
    while (st == GGL_OK && !llm_mel_stream_has_ended(h->stream)) {
        st = listen(h, err);
        if (st == GGL_OK)
            st = llm_mel_stream_measure(h->stream, err);
        llm_mel_stream_drop(h->stream, llm_mel_stream_n_rows(h->stream));
    }
    h->largest = llm_mel_stream_largest(h->stream);
    h->is_measured = true;
    llm_mel_stream_free(h->stream);
    h->stream = NULL;
    if (st == GGL_OK)
        st = llm_sound_rewind(h->sound, err);
    return st == GGL_OK ? llm_mel_stream_new(&h->stream, h->mel, err) : st;
}

ggl_status llm_hearing_window(hearing *h, int64_t at, int64_t until, int64_t *n, ggl_error *err) {
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !llm_mel_stream_has_ended(h->stream) &&
           llm_mel_stream_n_rows(h->stream) < at + h->n_window) {
        st = listen(h, err);
        if (st == GGL_OK && !h->is_measured)
            st = llm_mel_stream_measure(h->stream, err);
        llm_mel_stream_drop(h->stream, at);
    }
    const int64_t have = llm_mel_stream_n_rows(h->stream), end = have < until ? have : until;
    *n = end - at < h->n_window ? end - at : h->n_window;
    if (st != GGL_OK)
        return st;
    if (!h->is_measured)
        h->largest = llm_mel_stream_largest(h->stream);
    st = llm_mel_stream_rows(h->stream, at, h->n_window, h->largest, h->rows, err);
    const float silence = llm_mel_silent_number(h->mel, h->largest);
    for (int64_t i = *n * h->n_mel; until < have && i < h->n_window * h->n_mel; i++)
        h->rows[i] = silence; /* what comes after `until` is not heard */
    return st;
}

void llm_hearing_cut(hearing *h, int64_t n) {
    for (int64_t i = n * h->n_mel; i < h->n_window * h->n_mel; i++)
        h->rows[i] = 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

ggl_status llm_hearing_open_as(hearing *h, llm_context *c, const hearing_input *in,
                               const char *path, const llm_transcribe_params *p, ggl_error *err) {
    h->c = c;
    h->how = in->how;
    if (!path && !p->data)
        return ggl_fail(err, GGL_USAGE, "a sound needs a path or data");
    h->name = path ? path : "the sound";
    const llm_audio audio = {.data = p->data,
                             .n = p->n_data,
                             .raw = p->raw,
                             .raw_rate = p->raw_rate,
                             .raw_channels = p->raw_channels};
    h->n_mel = in->n_mel;
    h->n_window = in->n_window;
    ggl_status st = open_mel(h, err);
    if (st == GGL_OK)
        st = llm_sound_rows_open(&h->sound, &audio, h->name, (int)h->how->rate, err);
    return st == GGL_OK ? measure(h, err) : st;
}

ggl_status llm_hearing_open(hearing *h, llm_context *c, const char *path,
                            const llm_transcribe_params *p, ggl_error *err) {
    const hearing_input in = {c->stages ? llm_stages_sound(c->stages) : NULL,
                              c->stages ? llm_stages_n_input(c->stages) : 0,
                              c->stages ? llm_stages_n_most(c->stages) : 0};
    return in.how ? llm_hearing_open_as(h, c, &in, path, p, err)
                  : ggl_fail(err, GGL_UNSUPPORTED,
                             "the model does not hear: its descriptor has no input from sound");
}

void llm_hearing_close(hearing *h) {
    llm_mel_stream_free(h->stream);
    llm_mel_free(h->mel);
    llm_sound_close(h->sound);
    ggl_free(h->rows);
    *h = (hearing){0};
}
