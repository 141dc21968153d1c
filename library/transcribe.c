/* llm_transcribe: writes down speech, window by window, as the published program does (openai/whisper, transcribe.py). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/params.h"
#include "sound/mel_stream.h"
#include "sound/sound.h"
#include "speech/speech_decoder.h"
#include "speech/speech_segments.h"

enum { PART = 16384, FIRST_TIME = 1000 / SPEECH_MS_PER_TOKEN, DEFAULT_TEXTS = 5 };

typedef struct transcriber {
    llm_context *c;
    llm_transcribe_params p;
    speech_tokens tokens;
    speech_decoder *decoder;
    speech_text text;
    llm_sound *sound;
    llm_mel *mel;
    llm_mel_stream *stream;
    double largest;       /* value of the sound */
    bool is_measured;     /* by a first pass */
    int64_t n_window;     /* rows of a window */
    float *rows;          /* [n_window][bands] */
    int64_t first, until; /* rows that are written down; until INT64_MAX: all */
    int32_t language;     /* its token; -1: none, or not known yet */
    char code[8];
    llm_tokens said; /* what was written, and before it the caller's prompt */
    size_t context;  /* from which of them on the next window sees them */
    char *piece;     /* a segment's text */
    size_t cap_piece;
    int64_t at; /* the window's first row */
    bool is_stopped;
} transcriber;

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for sound");
}

static void note(const transcriber *t, const char *text) {
    if (t->p.note && *text)
        t->p.note(t->p.user, text);
}

static ggl_status read_params(transcriber *t, const llm_transcribe_params *params, ggl_error *err) {
    llm_transcribe_params *p = &t->p;
    *p = (llm_transcribe_params){.size = sizeof *p};
    const ggl_status st = GGL_READ_PARAMS(llm_transcribe_params, p, params, err);
    if (st != GGL_OK)
        return st;
    const double number[] = {(double)p->temperature,
                             (double)p->temperature_step,
                             (double)p->least_logprob,
                             (double)p->least_entropy,
                             (double)p->no_speech,
                             p->offset,
                             p->duration};
    for (size_t k = 0; k < sizeof number / sizeof *number; k++)
        if (!isfinite(number[k]))
            return ggl_fail(err, GGL_USAGE, "a number of llm_transcribe_params is not finite");
    if (p->temperature < 0 || p->temperature > 1)
        return ggl_fail(err, GGL_USAGE, "temperature must be 0 to 1, but is %g",
                        (double)p->temperature);
    if (p->offset < 0 || p->duration < 0 || p->offset > 1e8 || p->duration > 1e8)
        return ggl_fail(err, GGL_USAGE,
                        "offset and duration must be 0 to 1e8 seconds, but are %g and %g",
                        p->offset, p->duration);
    if (p->n_beams < 0 || p->n_best < 0)
        return ggl_fail(err, GGL_USAGE,
                        "n_beams and n_best must be 0 or more, but are %" PRId32 " and %" PRId32,
                        p->n_beams, p->n_best);
    p->temperature_step = p->temperature_step == 0 ? 0.2f : p->temperature_step;
    p->least_logprob = p->least_logprob == 0 ? -1 : p->least_logprob;
    p->least_entropy = p->least_entropy == 0 ? 2.4f : p->least_entropy;
    p->no_speech = p->no_speech == 0 ? 0.6f : p->no_speech;
    p->n_beams = p->n_beams == 0 ? DEFAULT_TEXTS : p->n_beams;
    p->n_best = p->n_best == 0 ? DEFAULT_TEXTS : p->n_best;
    return GGL_OK;
}

/* Reads the file's list of tokens that are never written; *n 0: it has none. */
static ggl_status read_never(const transcriber *t, int32_t **id, size_t *n, ggl_error *err) {
    const ggl_gguf *file = llm_model_file(t->c->model);
    char key[160];
    snprintf(key, sizeof key, "%.100s.suppress_tokens", llm_session_built(t->c->session)->family);
    const ggl_gguf_value *v = ggl_gguf_find(file, key);
    *id = NULL;
    *n = 0;
    if (!v || !v->is_array || v->n == 0)
        return GGL_OK;
    if (!(*id = ggl_calloc((size_t)v->n, sizeof **id)))
        return no_memory(err);
    for (uint64_t k = 0; k < v->n; k++) {
        double x = -1;
        if (!ggl_gguf_number(v, k, &x))
            return ggl_fail(err, GGL_FORMAT, "key %s is no list of tokens", key);
        (*id)[(*n)++] = x >= 0 && x < INT32_MAX ? (int32_t)x : -1;
    }
    return GGL_OK;
}

static ggl_status open_tokens(transcriber *t, ggl_error *err) {
    llm_context *c = t->c;
    int32_t *never;
    size_t n;
    if (!c->stages || !llm_stages_sound(c->stages))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model does not hear: its descriptor has no input from sound");
    if (!c->tokenizer)
        return ggl_fail(err, c->why_no_tokenizer.status, "%s", c->why_no_tokenizer.msg);
    ggl_status st = read_never(t, &never, &n, err);
    if (st == GGL_OK)
        st = speech_tokens_init(&t->tokens, c->tokenizer, (int32_t)llm_session_n_vocab(c->session),
                                never, n, err);
    ggl_free(never);
    return st == GGL_OK ? speech_decoder_new(&t->decoder, c->session, err) : st;
}

/* Filters as floats, [*n]; NULL: they are computed. */
static ggl_status read_filters(const llm_arch_sound *s, int64_t n, float **out, ggl_error *err) {
    const ggl_type_info *type = ggl_type_get((int)s->filter_type);
    *out = NULL;
    if (!s->filter)
        return GGL_OK;
    if (!type || !type->to_float || n % type->block != 0)
        return ggl_fail(err, GGL_UNSUPPORTED, "filters of sound cannot have the type %s",
                        type ? type->name : "?");
    if (!(*out = ggl_calloc((size_t)n, sizeof **out)))
        return no_memory(err);
    type->to_float(s->filter, *out, n);
    return GGL_OK;
}

static ggl_status open_mel(transcriber *t, ggl_error *err) {
    const llm_arch_sound *s = llm_stages_sound(t->c->stages);
    const int64_t n_mel = llm_stages_n_input(t->c->stages);
    float *filter;
    ggl_status st = read_filters(s, n_mel * (s->window / 2 + 1), &filter, err);
    llm_mel_params p = llm_mel_default();
    p.rate = (int)s->rate;
    p.n_window = (int)s->window;
    p.n_step = (int)s->step;
    p.n_mel = (int)n_mel;
    p.range = s->range;
    p.filter = filter;
    if (st == GGL_OK)
        st = llm_mel_new(&t->mel, &p, err);
    ggl_free(filter);
    t->n_window = llm_stages_n_most(t->c->stages);
    t->rows = ggl_calloc((size_t)(t->n_window * n_mel), sizeof *t->rows);
    return st == GGL_OK && !t->rows ? no_memory(err) : st;
}

static ggl_status open_sound(transcriber *t, const char *path, ggl_error *err) {
    static const char *const kinds[] = {
        [LLM_SOUND_NOT_RAW] = "", [LLM_SOUND_S16LE] = "s16le", [LLM_SOUND_F32LE] = "f32le"};
    const llm_transcribe_params *p = &t->p;
    int raw = 0;
    while (p->raw && raw < 3 && strcmp(kinds[raw], p->raw) != 0)
        raw++;
    if (raw == 3)
        return ggl_fail(err, GGL_USAGE, "raw is '%s'; it can be s16le or f32le", p->raw);
    const llm_sound_params sp = {.rate = (int)llm_stages_sound(t->c->stages)->rate,
                                 .raw = (llm_sound_raw)raw,
                                 .raw_rate = p->raw_rate,
                                 .raw_channels = p->raw_channels,
                                 .data = p->data,
                                 .n_data = p->n_data};
    return llm_sound_open(&t->sound, path, &sp, err);
}

static int64_t rows_in(const transcriber *t, double seconds) {
    const llm_arch_sound *s = llm_stages_sound(t->c->stages);
    return (int64_t)(seconds * (double)s->rate / (double)s->step + 0.5);
}

static double seconds_of(const transcriber *t, int64_t rows) {
    const llm_arch_sound *s = llm_stages_sound(t->c->stages);
    return (double)rows * (double)s->step / (double)s->rate;
}

static ggl_status choose_language(transcriber *t, ggl_error *err) {
    const char *name = t->p.language;
    t->language = -1;
    if (!name || strcmp(name, "auto") == 0)
        return GGL_OK;
    t->language = speech_find_language(&t->tokens, name);
    const bool is_only =
        t->tokens.n_languages == 0 && (strcmp(name, "en") == 0 || strcmp(name, "english") == 0);
    if (t->language < 0 && !is_only)
        return ggl_fail(err, GGL_USAGE, "the model does not know the language '%s'%s", name,
                        t->tokens.n_languages == 0 ? ": it is told none"
                                                   : "; give its code, such "
                                                     "as \"de\", or its "
                                                     "English name");
    return GGL_OK;
}

static ggl_status read_prompt(transcriber *t, ggl_error *err) {
    const char *s = t->p.prompt;
    if (!s || !*s)
        return GGL_OK;
    const size_t n = strlen(s);
    char *text = ggl_calloc(n + 2, 1);
    if (!text)
        return no_memory(err);
    text[0] = ' ';
    memcpy(text + 1, s + (s[0] == ' '), n - (s[0] == ' '));
    const ggl_status st = llm_tokenize(t->c->tokenizer, text, strlen(text), 0, &t->said, err);
    ggl_free(text);
    return st;
}

/* --- listening -------------------------------------------------------------------------------- */

static bool is_cancelled(void *ctx) {
    return llm_context_is_cancelled(ctx);
}

static ggl_status stopped(ggl_error *err) {
    return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
}

/* Reads a part of the sound into the stream. */
static ggl_status listen(transcriber *t, ggl_error *err) {
    float part[PART];
    int64_t n = 0;
    if (llm_context_is_cancelled(t->c))
        return stopped(err);
    const ggl_status st = llm_sound_read(t->sound, part, PART, &n, err);
    if (st != GGL_OK)
        return st;
    if (n > 0)
        return llm_mel_stream_add(t->stream, part, n, err);
    llm_mel_stream_end(t->stream);
    return GGL_OK;
}

/* Finds the largest value of a sound that can be read twice. */
static ggl_status measure(transcriber *t, ggl_error *err) {
    ggl_status st = llm_mel_stream_new(&t->stream, t->mel, err);
    t->largest = llm_mel_silence(t->mel);
    if (st != GGL_OK || !llm_sound_can_rewind(t->sound))
        return st;
    while (st == GGL_OK && !llm_mel_stream_has_ended(t->stream)) {
        st = listen(t, err);
        if (st == GGL_OK)
            st = llm_mel_stream_measure(t->stream, err);
        llm_mel_stream_drop(t->stream, llm_mel_stream_n_rows(t->stream));
    }
    t->largest = llm_mel_stream_largest(t->stream);
    t->is_measured = true;
    llm_mel_stream_free(t->stream);
    t->stream = NULL;
    if (st == GGL_OK)
        st = llm_sound_rewind(t->sound, err);
    return st == GGL_OK ? llm_mel_stream_new(&t->stream, t->mel, err) : st;
}

/* Reads until the window that begins at t->at can be computed. Sets *n to how many of its rows are of the sound; 0: the sound has ended
 * before. */
static ggl_status fill_window(transcriber *t, int64_t *n, ggl_error *err) {
    const int64_t until = t->at + t->n_window;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !llm_mel_stream_has_ended(t->stream) &&
           llm_mel_stream_n_rows(t->stream) < until) {
        st = listen(t, err);
        if (st == GGL_OK && !t->is_measured)
            st = llm_mel_stream_measure(t->stream, err);
        llm_mel_stream_drop(t->stream, t->at);
    }
    const int64_t have = llm_mel_stream_n_rows(t->stream), end = have < t->until ? have : t->until;
    *n = end - t->at < t->n_window ? end - t->at : t->n_window;
    if (st != GGL_OK || *n <= 0)
        return st;
    if (!t->is_measured)
        t->largest = llm_mel_stream_largest(t->stream);
    return llm_mel_stream_rows(t->stream, t->at, t->n_window, t->largest, t->rows, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static ggl_status detect(transcriber *t, ggl_error *err) {
    char text[96];
    double p;
    size_t n;
    if (t->tokens.n_languages == 0)
        return GGL_OK;
    const bool is_asked = t->language < 0;
    if (is_asked) {
        const ggl_status st = speech_detect(t->decoder, &t->tokens, &t->language, &p, err);
        if (st != GGL_OK)
            return st;
    }
    const char *code = speech_language_code(&t->tokens, t->language, &n);
    snprintf(t->code, sizeof t->code, "%.*s", (int)n, code);
    const char *name = speech_language_name(t->code);
    snprintf(text, sizeof text, "the language is %s%s%s%s, with a probability of %.2f", t->code,
             name ? " (" : "", name ? name : "", name ? ")" : "", is_asked ? p : 1);
    if (is_asked)
        note(t, text);
    return GGL_OK;
}

/* Makes the prompt of a window: what was written before, as much as half of the context holds, and what to do. *at_start: the place of the token
 * that begins it. Returns its length. */
static size_t make_prompt(const transcriber *t, int32_t *prompt, size_t *at_start) {
    const speech_tokens *k = &t->tokens;
    const size_t most = (size_t)(llm_session_n_ctx(t->c->session) / 2 - 1);
    const size_t first = t->said.n - t->context > most ? t->said.n - most : t->context;
    size_t n = 0;
    if (first < t->said.n && k->previous >= 0) {
        prompt[n++] = k->previous;
        memcpy(prompt + n, t->said.id + first, (t->said.n - first) * sizeof *prompt);
        n += t->said.n - first;
    }
    *at_start = n;
    prompt[n++] = k->start;
    if (t->language >= 0) {
        prompt[n++] = t->language;
        prompt[n++] = t->p.translate ? k->translate : k->transcribe;
    }
    if (t->p.no_times)
        prompt[n++] = k->no_times;
    return n;
}

/* Sets t->piece to the text of the tokens. */
static ggl_status write_piece(transcriber *t, const int32_t *id, size_t n, size_t *n_text,
                              ggl_error *err) {
    size_t size = 0;
    for (size_t k = 0; k < n; k++)
        if (!speech_is_time(&t->tokens, id[k])) {
            const ggl_str s = llm_token_text(t->c->tokenizer, id[k], false);
            if (!ggl_grow(&t->piece, &t->cap_piece, size + s.n + 1, 1))
                return no_memory(err);
            memcpy(t->piece + size, s.s, s.n);
            size += s.n;
        }
    if (!ggl_grow(&t->piece, &t->cap_piece, size + 1, 1))
        return no_memory(err);
    t->piece[size] = 0;
    *n_text = size;
    return GGL_OK;
}

typedef struct cutting {
    transcriber *t;
    ggl_status st;
    ggl_error *err;
} cutting;

static bool on_segment(void *ctx, const speech_segment *s) {
    cutting *x = ctx;
    transcriber *t = x->t;
    size_t n = 0;
    x->st = write_piece(t, s->id, s->n, &n, x->err);
    if (x->st != GGL_OK)
        return false;
    const bool is_empty = s->end_ms <= s->start_ms || strspn(t->piece, " ") == n;
    if (is_empty)
        return true;
    if (!ggl_grow(&t->said.id, &t->said.cap, t->said.n + s->n, sizeof *t->said.id)) {
        x->st = no_memory(x->err);
        return false;
    }
    memcpy(t->said.id + t->said.n, s->id, s->n * sizeof *s->id);
    t->said.n += s->n;
    const double begin = seconds_of(t, t->at);
    const llm_speech piece = {.start = begin + 0.001 * (double)s->start_ms,
                              .end = begin + 0.001 * (double)s->end_ms,
                              .text = t->piece,
                              .n = n,
                              .id = s->id,
                              .n_id = s->n,
                              .language = t->code,
                              .logprob = t->text.mean,
                              .no_speech = t->text.no_speech,
                              .temperature = t->text.temperature};
    t->is_stopped = t->p.each && !t->p.each(t->p.user, &piece);
    return !t->is_stopped;
}

/* Writes down the window, of which n rows are sound, and moves on. */
static ggl_status write_window(transcriber *t, int64_t n, ggl_error *err) {
    const llm_transcribe_params *p = &t->p;
    int32_t prompt[1024];
    size_t at_start;
    bool is_found;
    ggl_status st = llm_stages_read(t->c->stages, 0, t->rows, t->n_window, &is_found, err);
    if (st == GGL_OK && !t->code[0])
        st = detect(t, err);
    if (st != GGL_OK)
        return st;
    const size_t n_prompt = make_prompt(t, prompt, &at_start);
    const speech_decoding d = {.rules = {&t->tokens, !p->no_times, FIRST_TIME},
                               .temperature = (double)p->temperature,
                               .step = (double)p->temperature_step,
                               .n_best = p->n_best,
                               .n_beams = p->n_beams,
                               .least = (double)p->least_logprob,
                               .least_entropy = (double)p->least_entropy,
                               .no_speech = (double)p->no_speech,
                               .seed = p->seed,
                               .cancelled = is_cancelled,
                               .ctx = t->c};
    st = speech_decode(t->decoder, &d, prompt, n_prompt, at_start, &t->text, err);
    if (st != GGL_OK)
        return st;
    const int64_t ms = (int64_t)(1000 * seconds_of(t, n) + 0.5);
    int64_t next = ms;
    cutting x = {t, GGL_OK, err};
    if (!(t->text.no_speech > d.no_speech && t->text.mean < d.least))
        next = speech_cut(&t->tokens, t->text.ids.id, t->text.ids.n, ms, on_segment, &x);
    if (p->no_context || t->text.temperature > 0.5)
        t->context = t->said.n;
    t->at += next > 0 && next < ms ? rows_in(t, 0.001 * (double)next) : n;
    return t->is_stopped ? stopped(err) : x.st;
}

static ggl_status tell_progress(transcriber *t, ggl_error *err) {
    const int64_t n = llm_sound_n_samples(t->sound);
    const double rate = (double)llm_stages_sound(t->c->stages)->rate;
    const double all = n < 0 ? -1 : (double)n / rate;
    return t->p.progress && !t->p.progress(t->p.user, seconds_of(t, t->at), all) ? stopped(err)
                                                                                 : GGL_OK;
}

static ggl_status write_all(transcriber *t, ggl_error *err) {
    int64_t n = 0;
    ggl_status st = GGL_OK;
    t->at = t->first;
    while (st == GGL_OK && t->at < t->until) {
        st = fill_window(t, &n, err);
        if (st != GGL_OK || n <= 0)
            break;
        st = write_window(t, n, err);
        if (st == GGL_OK)
            st = tell_progress(t, err);
    }
    note(t, llm_sound_note(t->sound));
    return st;
}

ggl_status llm_transcribe(llm_context *c, const char *path, const llm_transcribe_params *params,
                          ggl_error *err) {
    transcriber t = {.c = c};
    ggl_error own;
    err = err ? err : &own;
    llm_context_start(c);
    ggl_status st = read_params(&t, params, err);
    if (st == GGL_OK)
        st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_clear(c, err);
    if (st == GGL_OK)
        st = open_tokens(&t, err);
    if (st == GGL_OK)
        st = choose_language(&t, err);
    if (st == GGL_OK)
        st = read_prompt(&t, err);
    if (st == GGL_OK)
        st = open_mel(&t, err);
    if (st == GGL_OK)
        st = open_sound(&t, path, err);
    if (st == GGL_OK)
        st = measure(&t, err);
    t.first = st == GGL_OK ? rows_in(&t, t.p.offset) : 0;
    t.until = st == GGL_OK && t.p.duration > 0 ? t.first + rows_in(&t, t.p.duration) : INT64_MAX;
    if (st == GGL_OK)
        st = write_all(&t, err);
    llm_mel_stream_free(t.stream);
    llm_mel_free(t.mel);
    llm_sound_close(t.sound);
    speech_decoder_free(t.decoder);
    speech_tokens_fini(&t.tokens);
    llm_tokens_fini(&t.text.ids);
    llm_tokens_fini(&t.said);
    ggl_free(t.rows);
    ggl_free(t.piece);
    return st;
}
