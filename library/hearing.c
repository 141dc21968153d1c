/* Sound that a model hears: hearing.h. */
#include "hearing.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "noticing.h"
#include "opening.h"
#include "voice.h"

enum { PART = 4096 }; /* samples, on the stack of a thread that may have little of it */

/* By so many seconds a model's times can miss speech that is cut out of a sound; it is no longer than the shortest speech that is found. */
static const double MISSED = 0.25;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for sound");
}

static ggl_status does_not_hear(const llm_context *c, ggl_error *err) {
    if (*llm_sense_lack(c))
        return ggl_fail(err, GGL_UNSUPPORTED, "the model hears no sounds: %s", llm_sense_lack(c));
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "the model does not hear: its descriptor has no input from sound, and it was "
                    "opened without an ear (mmproj)");
}

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status open_mel(hearing *h, ggl_error *err) {
    if (h->how->is_samples || h->how->apart || h->how->level == LLM_LEVEL_BANDS)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "a sound that is written down piece by piece cannot have rows of samples, "
                        "windows that are apart, or bands less their mean");
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

/* --- the samples that are heard --------------------------------------------------------------- */

/* Reads samples of the sound, whatever they are. */
static ggl_status read_any(hearing *h, float *to, int64_t n, int64_t *got, ggl_error *err) {
    const int64_t left = (int64_t)h->n_kept - h->n_read;
    ggl_status st = GGL_OK;
    if (h->kept) {
        *got = n < left ? n : left;
        memcpy(to, h->kept + h->n_read, (size_t)*got * sizeof *to);
    } else {
        st = llm_sound_read(h->sound, to, n, got, err);
    }
    h->n_read += st == GGL_OK ? *got : 0;
    return st;
}

/* Reads on to the part's next sample, or some of the way. */
static ggl_status skip(hearing *h, int64_t n, float *scratch, int64_t n_scratch, bool *ended,
                       ggl_error *err) {
    int64_t got = 0;
    if (llm_context_is_cancelled(h->c))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    const ggl_status st = read_any(h, scratch, n < n_scratch ? n : n_scratch, &got, err);
    *ended = st == GGL_OK && got == 0;
    return st;
}

/* Reads samples that are heard. *got is 0 at the end only. */
static ggl_status read_heard(hearing *h, float *to, int64_t n, int64_t *got, ggl_error *err) {
    ggl_status st = GGL_OK;
    bool ended = false;
    *got = 0;
    if (!h->has_parts)
        return read_any(h, to, n, got, err);
    while (st == GGL_OK && *got == 0 && !ended && h->i_part < h->n_parts) {
        const heard_part *p = &h->part[h->i_part];
        const int64_t here = p->from + h->n_part_read - h->n_read, left = p->n - h->n_part_read,
                      silent = p->n + p->gap - h->n_part_read;
        if (left > 0 && here > 0) {
            st = skip(h, here, to, n, &ended, err);
            continue;
        }
        if (left > 0) {
            st = read_any(h, to, left < n ? left : n, got, err);
            ended = *got == 0;
        } else if (silent > 0) {
            *got = silent < n ? silent : n;
            memset(to, 0, (size_t)*got * sizeof *to);
        } else {
            h->i_part++;
            h->n_part_read = 0;
            continue;
        }
        h->n_part_read += *got;
    }
    return st;
}

static bool can_rewind(const hearing *h) {
    return h->kept || llm_sound_can_rewind(h->sound);
}

static ggl_status rewind_sound(hearing *h, ggl_error *err) {
    h->i_part = 0;
    h->n_part_read = h->n_read = 0;
    return h->kept ? GGL_OK : llm_sound_rewind(h->sound, err);
}

/* Returns the part that a sample of what is heard is in, from `first` on. The silence after a part belongs to what ends in it, or to the next
 * part. */
static size_t part_at(const hearing *h, size_t first, double at, bool ends) {
    size_t k = first;
    while (k + 1 < h->n_parts &&
           (ends ? at > (double)h->part[k + 1].at : at >= (double)(h->part[k].at + h->part[k].n)))
        k++;
    return k;
}

/* Returns the time in the sound of a sample of what is heard, as near as part k has it. */
static double place_in(const hearing *h, size_t k, double at) {
    const heard_part *p = &h->part[k];
    const double in = at - (double)p->at, n = (double)p->n;
    return ((double)p->from + (in < 0 ? 0 : in > n ? n : in)) / (double)h->how->rate;
}

double llm_hearing_place(const hearing *h, double seconds) {
    const double at = seconds * (double)h->how->rate;
    return h->has_parts && h->n_parts > 0 ? place_in(h, part_at(h, 0, at, false), at) : seconds;
}

/* True if so many samples at the end of a part that something else fills have no speech: a model's times are not exact. */
static bool has_no_speech(const hearing *h, size_t k, double n) {
    return n < h->inexact * (double)h->how->rate && n < 0.5 * (double)h->part[k].n;
}

void llm_hearing_place_piece(const hearing *h, double *start, double *end) {
    const double rate = (double)h->how->rate, from = *start * rate, to = *end * rate;
    if (!h->has_parts || h->n_parts == 0)
        return;
    size_t first = part_at(h, 0, from, false), last = part_at(h, first, to, true);
    if (first < last && has_no_speech(h, last, to - (double)h->part[last].at))
        last--;
    if (first < last &&
        has_no_speech(h, first, (double)(h->part[first].at + h->part[first].n) - from))
        first++;
    *start = place_in(h, first, from);
    *end = place_in(h, last, to);
    if (*end <= *start) /* it was heard in the silence between two parts */
        *end = place_in(h, last, (double)h->part[last].at + to - from);
}

void llm_hearing_place_word(const hearing *h, double *start, double *end) {
    const double rate = (double)h->how->rate, from = *start * rate, to = *end * rate;
    if (!h->has_parts || h->n_parts == 0)
        return;
    const size_t k = part_at(h, 0, (from + to) / 2, false);
    *start = place_in(h, k, from);
    *end = place_in(h, k, to);
}

/* --- speech that is found --------------------------------------------------------------------- */

/* Hears the whole sound with the model that finds speech, and keeps a sound that cannot be read again. */
static ggl_status find_voices(hearing *h, voice_probabilities *found, ggl_error *err) {
    float part[PART];
    int64_t n = 1;
    ggl_status st = GGL_OK;
    const bool keeps = !llm_sound_can_rewind(h->sound);
    while (st == GGL_OK && n > 0) {
        st = llm_sound_read(h->sound, part, PART, &n, err);
        if (st == GGL_OK)
            st = llm_voice_hear(h->c->voice, found, part, n, n == 0, h->c, err);
        if (st != GGL_OK || !keeps)
            continue;
        if (!ggl_grow(&h->kept, &h->cap_kept, h->n_kept + (size_t)n + 1, sizeof *h->kept))
            return no_memory(err);
        memcpy(h->kept + h->n_kept, part, (size_t)n * sizeof *part);
        h->n_kept += (size_t)n;
    }
    return st;
}

/* Makes the parts of the spans, as far as they lie in the seconds that are wanted: as in whisper.cpp, each is heard a little longer, and 0.1 s of
 * silence follow. */
static ggl_status make_parts(hearing *h, const voice_spans *s, const llm_transcribe_params *p,
                             ggl_error *err) {
    const double rate = (double)h->how->rate;
    const int64_t first = (int64_t)(p->offset * rate),
                  until = p->duration > 0 ? first + (int64_t)(p->duration * rate) : INT64_MAX,
                  overlap = (int64_t)((double)p->vad_samples_overlap * rate);
    int64_t at = 0;
    h->part = ggl_calloc(s->n + 1, sizeof *h->part);
    if (!h->part)
        return no_memory(err);
    for (size_t k = 0; k < s->n; k++) {
        const int64_t next = k + 1 < s->n ? s->span[k + 1].from : s->span[k].to;
        int64_t from = s->span[k].from, to = s->span[k].to;
        to = to + overlap < next ? to + overlap : next > to ? next : to;
        from = from > first ? from : first;
        to = to < until ? to : until;
        if (to <= from)
            continue;
        const int64_t gap = k + 1 < s->n ? (int64_t)(rate / 10) : 0;
        h->part[h->n_parts++] = (heard_part){from, to - from, gap, at};
        h->spoken += (double)(to - from) / rate;
        at += to - from + gap;
    }
    return GGL_OK;
}

bool llm_finds_speech(const llm_model *m) {
    static const char *const keys[] = {"chunk_length", "past_length", "sample_rate"};
    bool all = true;
    char key[160];
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        snprintf(key, sizeof key, "%.100s.audio.%s", llm_arch_family(llm_model_arch(m), 0),
                 keys[k]);
        all &= ggl_gguf_find(llm_model_file(m), key) != NULL;
    }
    return all;
}

ggl_status llm_context_open_voice(llm_context *c, const char *path, ggl_error *err) {
    const llm_arch_sound *how = c->stages ? llm_stages_sound(c->stages) : llm_eye_sound(c->eye);
    if (!how)
        return does_not_hear(c, err);
    if (c->voice && strcmp(llm_voice_path(c->voice), path) != 0) {
        llm_voice_close(c->voice);
        c->voice = NULL;
    }
    const ggl_status st = c->voice ? GGL_OK : llm_voice_open(&c->voice, path, err);
    if (st != GGL_OK || llm_voice_rate(c->voice) == (int)how->rate)
        return st;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s hears %d samples per second, but the model that writes down speech %d",
                    path, llm_voice_rate(c->voice), (int)how->rate);
}

/* Finds the parts of the sound that are heard. */
static ggl_status find_parts(hearing *h, const llm_transcribe_params *p, ggl_error *err) {
    voice_probabilities found = {0};
    voice_spans spans = {0};
    voice_rules rules;
    ggl_status st = llm_context_open_voice(h->c, p->vad_model, err);
    if (st == GGL_OK)
        st = llm_voice_rules(&rules, h->c->voice, p, err);
    if (st == GGL_OK)
        st = find_voices(h, &found, err);
    if (st == GGL_OK)
        st = llm_voice_spans_find(&spans, found.p, found.n, found.n_samples, &rules, err);
    if (st == GGL_OK)
        st = make_parts(h, &spans, p, err);
    h->has_parts = true;
    h->inexact = MISSED + 0.001 * p->vad_speech_pad_ms;
    h->seconds = (double)found.n_samples / (double)h->how->rate;
    llm_voice_spans_fini(&spans);
    ggl_free(found.p);
    return st == GGL_OK ? rewind_sound(h, err) : st;
}

/* --- listening -------------------------------------------------------------------------------- */

/* Reads a part of the sound into the stream. */
static ggl_status listen(hearing *h, ggl_error *err) {
    float part[PART];
    int64_t n = 0;
    if (llm_context_is_cancelled(h->c))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    const ggl_status st = read_heard(h, part, PART, &n, err);
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
    if (st != GGL_OK || !can_rewind(h))
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
        st = rewind_sound(h, err);
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

/* --- what the caller is told ------------------------------------------------------------------ */

void llm_hearing_tell_note(const llm_transcribe_params *p, const char *text) {
    if (p->note && *text)
        p->note(p->user, text);
}

size_t llm_hearing_mend(char *to, const char *s, size_t n) {
    static const char unknown[] = "\xef\xbf\xbd";
    size_t k = 0;
    for (size_t at = 0, len; at < n; at += len ? len : 1) {
        len = ggl_utf8_length(s + at, n - at);
        memcpy(to + k, len ? s + at : unknown, len ? len : 3);
        k += len ? len : 3;
    }
    return k;
}

void llm_hearing_tell_parts(const hearing *h, const llm_transcribe_params *p) {
    char text[128];
    snprintf(text, sizeof text, "speech was found in %zu part%s of %.1f s, together %.1f s",
             h->n_parts, h->n_parts == 1 ? "" : "s", h->seconds, h->spoken);
    if (h->has_parts)
        llm_hearing_tell_note(p, text);
}

ggl_status llm_hearing_tell_progress(const hearing *h, const llm_transcribe_params *p,
                                     double seconds, ggl_error *err) {
    const int64_t n =
        h->sound ? llm_sound_n_samples(h->sound) : -1; /* NULL: it is given piece by piece */
    const double all = n < 0 ? -1 : (double)n / (double)h->how->rate;
    return p->progress && !p->progress(p->user, llm_hearing_place(h, seconds), all)
               ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
               : GGL_OK;
}

ggl_status llm_hearing_tell_nothing(const hearing *h, const llm_transcribe_params *p,
                                    double seconds, ggl_error *err) {
    if (h->has_parts)
        return llm_hearing_tell_progress(h, p, seconds, err);
    if (p->offset > 0)
        return ggl_fail(err, GGL_USAGE, "%s: the sound ends before %g seconds", h->name, p->offset);
    llm_hearing_tell_note(p, "the sound is so short that there is nothing to write down");
    return GGL_OK;
}

void llm_hearing_tell_sound(const hearing *h, const llm_transcribe_params *p) {
    const char *damage = llm_sound_damage(h->sound);
    char text[128];
    llm_hearing_tell_note(p, llm_sound_note(h->sound));
    snprintf(text, sizeof text, "the sound is damaged: %s", damage);
    if (*damage && p->warn)
        p->warn(p->user, text);
    else if (*damage)
        llm_hearing_tell_note(p, text);
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Opens the sound, and finds the parts that are heard. */
static ggl_status open_sound(hearing *h, llm_context *c, const llm_arch_sound *how,
                             const char *path, const llm_transcribe_params *p, ggl_error *err) {
    h->c = c;
    h->how = how;
    if (!path && !p->data)
        return ggl_fail(err, GGL_USAGE, "a sound needs a path or data");
    h->name = !path ? "the sound" : strcmp(path, "-") == 0 ? "standard input" : path;
    const llm_audio audio = {.data = p->data,
                             .n = p->n_data,
                             .raw = p->raw,
                             .raw_rate = p->raw_rate,
                             .raw_channels = p->raw_channels};
    const ggl_status st =
        llm_sound_rows_open(&h->sound, &audio, path ? path : h->name, (int)how->rate, !p->data,
                            llm_context_is_cancelled, c, err);
    return st == GGL_OK && p->vad_model ? find_parts(h, p, err) : st;
}

ggl_status llm_hearing_open_samples(hearing *h, llm_context *c, const llm_arch_sound *how,
                                    const char *path, const llm_transcribe_params *p,
                                    ggl_error *err) {
    return open_sound(h, c, how, path, p, err);
}

ggl_status llm_hearing_samples(hearing *h, float *to, int64_t n, int64_t *got, ggl_error *err) {
    return read_heard(h, to, n, got, err);
}

ggl_status llm_hearing_open_as(hearing *h, llm_context *c, const hearing_input *in,
                               const char *path, const llm_transcribe_params *p, ggl_error *err) {
    h->how = in->how;
    h->n_mel = in->n_mel;
    h->n_window = in->n_window;
    ggl_status st = open_mel(h, err);
    if (st == GGL_OK)
        st = open_sound(h, c, in->how, path, p, err);
    return st == GGL_OK ? measure(h, err) : st;
}

ggl_status llm_hearing_open(hearing *h, llm_context *c, const char *path,
                            const llm_transcribe_params *p, ggl_error *err) {
    const hearing_input in = {c->stages ? llm_stages_sound(c->stages) : NULL,
                              c->stages ? llm_stages_n_input(c->stages) : 0,
                              c->stages ? llm_stages_n_most(c->stages) : 0};
    return in.how ? llm_hearing_open_as(h, c, &in, path, p, err) : does_not_hear(c, err);
}

void llm_hearing_close(hearing *h) {
    llm_mel_stream_free(h->stream);
    llm_mel_free(h->mel);
    llm_sound_close(h->sound);
    ggl_free(h->rows);
    ggl_free(h->part);
    ggl_free(h->kept);
    *h = (hearing){0};
}
