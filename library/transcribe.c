/* llm_transcribe: writes down speech, window by window, as the published program does (openai/whisper, transcribe.py). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dictating.h"
#include "hearing.h"
#include "noticing.h"
#include "opening.h"
#include "voice.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"
#include "transcribing.h"
#include "speech/speech_decoder.h"
#include "speech/speech_segments.h"
#include "speech/speech_words.h"
#include "speech/word_split.h"

enum { FIRST_TIME = 1000 / SPEECH_MS_PER_TOKEN };

/* Bytes that grow. */
typedef struct bytes {
    char *s;
    size_t cap;
} bytes;

typedef struct transcriber {
    llm_context *c;
    llm_transcribe_params p;
    speech_tokens tokens;
    speech_decoder *decoder;
    speech_text text;
    hearing h;
    int64_t first, until; /* rows that are written down; until INT64_MAX: all */
    int32_t language;     /* its token; -1: none, or not known yet */
    char code[8];
    int32_t *prompt;         /* [n_ctx]: of a window */
    llm_tokens said;         /* what was written, and before it the caller's prompt */
    size_t context;          /* from which of them on the next window sees them */
    bytes piece, raw;        /* a segment's text, as UTF-8 and as the tokens have it */
    int64_t at;              /* the window's first row */
    bool is_read;            /* the encoder has run on it */
    size_t at_start;         /* where in `prompt` the tokens begin that tell the model what to do */
    speech_segment *segment; /* [n_segments]: of the window */
    speech_piece *placed;    /* [n_segments]: when they were said */
    size_t n_segments, cap_segments, cap_placed;
    int64_t sound_ms; /* of the window */
    bool is_full;     /* there was no memory for a segment */
    /* With params.words: those of the window; what the caller gets of them; where the last piece ended. */
    speech_words words;
    llm_word *given;
    size_t cap_given;
    bytes word_text;
    double last_end;
} transcriber;

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for sound");
}

ggl_status llm_transcribe_read(llm_transcribe_params *p, const llm_transcribe_params *params,
                               ggl_error *err) {
    *p = llm_transcribe_default();
    const ggl_status st = GGL_READ_PARAMS(llm_transcribe_params, p, params, err);
    if (st != GGL_OK)
        return st;
    const double number[] = {(double)p->temperature,
                             (double)p->temperature_step,
                             (double)p->least_logprob,
                             (double)p->least_entropy,
                             (double)p->most_ratio,
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
    if (p->n_beams < 0 || p->n_best < 0 || p->n_beams > SPEECH_MOST_TEXTS ||
        p->n_best > SPEECH_MOST_TEXTS)
        return ggl_fail(err, GGL_USAGE,
                        "n_beams and n_best must be 0 to %d, but are %" PRId32 " and %" PRId32,
                        SPEECH_MOST_TEXTS, p->n_beams, p->n_best);
    return p->vad_model ? GGL_OK : llm_voice_check_unused(p, err);
}

/* Refuses more texts at once than the context has sequences for, if they will be needed. */
static ggl_status check_texts(const transcriber *t, ggl_error *err) {
    const llm_transcribe_params *p = &t->p;
    const int64_t n_slots = llm_session_n_slots(t->c->session);
    const bool draws = p->temperature > 0 || p->temperature_step > 0;
    const bool has_beams = p->temperature > 0 || p->n_beams <= n_slots;
    if (has_beams && (!draws || p->n_best <= n_slots))
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "%" PRId32 " %s need as many sequences (n_parallel), but the "
                    "context was opened with %" PRId64 "; ask for no more, or for none (0)",
                    has_beams ? p->n_best : p->n_beams, has_beams ? "drawn texts" : "beams",
                    n_slots);
}

/* How many tokens tell the model what to do: where to begin and, if it knows several languages, which one and the task; and no times. */
static int64_t n_orders(const transcriber *t) {
    return 1 + (t->tokens.n_languages > 0 ? 2 : 0) + t->p.no_times;
}

static ggl_status open_decoder(transcriber *t, ggl_error *err) {
    if (t->p.words && llm_session_n_aligned_heads(t->c->session) == 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "times of words need a model that was opened with words set");
    if (t->p.words && t->p.translate)
        llm_hearing_tell_note(
            &t->p,
            "words of another language than the spoken one have times that are only roughly right");
    const int64_t n_ctx = llm_session_n_ctx(t->c->session);
    if (n_orders(t) + 1 > n_ctx)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: the context has %" PRId64 " tokens, too few: %" PRId64
                        " tell the model what to do, and at least one is written",
                        ggl_gguf_name(llm_model_file(t->c->model)), n_ctx, n_orders(t));
    if (!(t->prompt = ggl_calloc((size_t)n_ctx, sizeof *t->prompt)))
        return no_memory(err);
    return llm_speech_decoder_new(&t->decoder, t->c->session, err);
}

static ggl_status open_tokens(transcriber *t, ggl_error *err) {
    llm_context *c = t->c;
    speech_keys keys;
    if (!c->tokenizer)
        return ggl_pass(err, &c->why_no_tokenizer);
    ggl_status st = llm_speech_keys_read(&keys, llm_model_file(c->model),
                                         llm_session_built(c->session)->family, err);
    if (st == GGL_OK)
        st = llm_speech_tokens_init(&t->tokens, c->tokenizer,
                                    (int32_t)llm_session_n_vocab(c->session),
                                    llm_session_writable(c->session), &keys, err);
    llm_speech_keys_fini(&keys);
    return st == GGL_OK ? open_decoder(t, err) : st;
}

/* Keeps the language's code, and tells the caller. */
static void set_code(transcriber *t, const char *code, size_t n) {
    snprintf(t->code, sizeof t->code, "%.*s", (int)n, code);
    if (t->p.spoken)
        t->p.spoken(t->p.user, t->code);
}

static void set_language(transcriber *t, int32_t language) {
    size_t n;
    const char *code = llm_speech_language_code(&t->tokens, language, &n);
    t->language = language;
    set_code(t, code, n);
}

static bool is_english(const char *name) {
    return ggl_case_compare(name, "en") == 0 || ggl_case_compare(name, "english") == 0;
}

/* Refuses a language, with the codes of some that the model knows. */
static ggl_status refuse_language(const speech_tokens *k, const char *name, ggl_error *err) {
    enum { SHOWN = 8 };
    char some[128] = "";
    const int32_t n = k->n_languages < SHOWN ? k->n_languages : SHOWN;
    for (int32_t i = 0; i < n; i++) {
        size_t size;
        const char *code = llm_speech_language_code(k, k->first_language + i, &size);
        const size_t at = strlen(some);
        snprintf(some + at, sizeof some - at, "%s%.*s", i ? ", " : "", (int)size, code);
    }
    return ggl_fail(
        err, GGL_USAGE,
        "the model does not know the language '%s'; give a code or an English name: %s%s", name,
        some, n < k->n_languages ? ", .." : "");
}

static ggl_status choose_language(transcriber *t, ggl_error *err) {
    const char *name = t->p.language;
    const bool is_given = name && strcmp(name, "auto") != 0;
    t->language = -1;
    if (t->tokens.n_languages == 0) {
        if (is_given && !is_english(name))
            return ggl_fail(err, GGL_USAGE,
                            "the model knows English alone, and not the language '%s'; give en, "
                            "or none",
                            name);
        set_code(t, "en", 2);
        if (t->p.translate)
            llm_hearing_tell_note(&t->p,
                                  "the model knows English alone: there is nothing to translate");
        return GGL_OK;
    }
    if (t->p.translate && t->tokens.translate < 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model does not translate: its tokens lack <|translate|>");
    if (!is_given)
        return GGL_OK;
    const int32_t language = llm_speech_find_language(&t->tokens, name);
    if (language < 0)
        return refuse_language(&t->tokens, name, err);
    set_language(t, language);
    return GGL_OK;
}

static ggl_status read_prompt(transcriber *t, ggl_error *err) {
    const char *s = t->p.prompt;
    if (!s || !*s)
        return GGL_OK;
    if (t->tokens.previous < 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model takes no prompt: its tokens lack <|startofprev|>");
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

static bool is_cancelled(void *ctx) {
    return llm_context_is_cancelled(ctx);
}

static ggl_status stopped(ggl_error *err) {
    return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Runs the encoder on the window. */
static ggl_status read_window(transcriber *t, ggl_error *err) {
    bool is_found;
    const double begin = ggl_os_seconds();
    const ggl_status st =
        llm_stages_read(t->c->stages, 0, t->h.rows, t->h.n_window, &is_found, err);
    t->c->run.prompt_seconds += ggl_os_seconds() - begin;
    t->c->run.n_prompt += t->h.n_window;
    t->is_read = true;
    return st;
}

/* Finds the language of the window. As published, the sound is followed by silence for that, and not cut. */
static ggl_status detect(transcriber *t, ggl_error *err) {
    char text[96];
    double p;
    int32_t language;
    ggl_status st = read_window(t, err);
    if (st == GGL_OK)
        st = llm_speech_detect(t->decoder, &t->tokens, &language, &p, err);
    if (st != GGL_OK)
        return st;
    set_language(t, language);
    const char *name = llm_speech_language_name(t->code);
    snprintf(text, sizeof text, "the language is %s%s%s%s, with a probability of %.2f", t->code,
             name ? " (" : "", name ? name : "", name ? ")" : "", p);
    llm_hearing_tell_note(&t->p, text);
    return GGL_OK;
}

/* Returns how many tokens of what was written before stand in a prompt, at most: half of the context, with the token that begins them, as
 * published, and no more than leave room for the orders and a token. */
static size_t most_before(const transcriber *t) {
    const int64_t n_ctx = llm_session_n_ctx(t->c->session), half = n_ctx / 2 - 1,
                  room = n_ctx - 1 - n_orders(t) - 1;
    const int64_t most = half < room ? half : room;
    return most > 0 ? (size_t)most : 0;
}

/* Makes the prompt of a window: what was written before, and, from t->at_start on, what to do. Returns its length. */
static size_t make_prompt(transcriber *t) {
    const speech_tokens *k = &t->tokens;
    const size_t most = most_before(t);
    const size_t first = t->said.n - t->context > most ? t->said.n - most : t->context;
    int32_t *const prompt = t->prompt;
    size_t n = 0;
    if (first < t->said.n && k->previous >= 0) {
        prompt[n++] = k->previous;
        memcpy(prompt + n, t->said.id + first, (t->said.n - first) * sizeof *prompt);
        n += t->said.n - first;
    }
    t->at_start = n;
    prompt[n++] = k->start;
    if (t->language >= 0) {
        prompt[n++] = t->language;
        prompt[n++] = t->p.translate ? k->translate : k->transcribe;
    }
    if (t->p.no_times)
        prompt[n++] = k->no_times;
    return n;
}

/* Appends bytes to *to, of which *n are used. False: out of memory. */
static bool append(bytes *to, size_t *n, const char *s, size_t n_s) {
    if (!ggl_grow(&to->s, &to->cap, *n + n_s + 1, 1))
        return false;
    if (n_s > 0) /* s may be NULL */
        memcpy(to->s + *n, s, n_s);
    *n += n_s;
    to->s[*n] = 0;
    return true;
}

/* Appends bytes with U+FFFD in place of each that is no part of a character. */
static bool append_mended(bytes *to, size_t *n, const char *s, size_t n_s) {
    if (!ggl_grow(&to->s, &to->cap, *n + 3 * n_s + 1, 1))
        return false;
    *n += llm_hearing_mend(to->s + *n, s, n_s);
    to->s[*n] = 0;
    return true;
}

/* Sets t->piece to the text of the tokens, *n_text bytes of UTF-8. */
static ggl_status write_piece(transcriber *t, const int32_t *id, size_t n, size_t *n_text,
                              ggl_error *err) {
    size_t n_raw = 0;
    bool ok = append(&t->raw, &n_raw, "", 0);
    for (size_t k = 0; k < n && ok; k++)
        if (!speech_is_time(&t->tokens, id[k])) {
            const ggl_str s = llm_token_text(t->c->tokenizer, id[k], false);
            ok = append(&t->raw, &n_raw, s.s, s.n);
        }
    *n_text = 0;
    return ok && append_mended(&t->piece, n_text, t->raw.s, n_raw) ? GGL_OK : no_memory(err);
}

static bool on_segment(void *ctx, const speech_segment *s) {
    transcriber *t = ctx;
    const bool ok = ggl_grow(&t->segment, &t->cap_segments, t->n_segments + 1, sizeof *s) &&
                    ggl_grow(&t->placed, &t->cap_placed, t->n_segments + 1, sizeof *t->placed);
    if (!ok) {
        t->is_full = true;
        return false;
    }
    const double begin = llm_hearing_seconds(&t->h, t->at);
    speech_piece *p = &t->placed[t->n_segments];
    /* the model does not know where the sound ends: pieces end there, and what is said after it is said at its end */
    const int64_t end = s->end_ms < t->sound_ms ? s->end_ms : t->sound_ms;
    int64_t start = s->start_ms < end ? s->start_ms : end;
    if (start == end && s->end_ms > s->start_ms)
        start = end > SPEECH_MS_PER_TOKEN ? end - SPEECH_MS_PER_TOKEN : 0;
    *p = (speech_piece){.start = begin + 0.001 * (double)start, .end = begin + 0.001 * (double)end};
    if (t->n_segments > 0)
        p->start = fmax(p->start, p[-1].start);
    for (size_t k = 0; k < s->n; k++)
        p->n_text += s->id[k] < t->tokens.end;
    t->segment[t->n_segments++] = *s;
    return true;
}

/* Finds the words of the window, of which n rows are sound, and the times of its pieces by them. *next, where the next window begins, in
 * milliseconds: after the last word, as published, unless the text says that nothing is spoken after it. */
static ggl_status find_words(transcriber *t, int64_t n, int64_t ms, int64_t *next, ggl_error *err) {
    const hearing *h = &t->h;
    const int64_t n_read = llm_session_n_aligned_rows(t->c->session);
    const size_t n_ids = t->text.ids.n;
    const int32_t *id = t->text.ids.id;
    const speech_segment *last = &t->segment[t->n_segments - 1]; /* what follows it is not kept */
    const double begin = llm_hearing_seconds(h, t->at);
    const speech_window w = {.order = t->prompt + t->at_start,
                             .n_orders = (size_t)(n_orders(t) - t->p.no_times),
                             .id = id,
                             .n = (size_t)(last->id + last->n - id),
                             .n_rows = n * n_read / h->n_window,
                             .row_seconds = llm_hearing_seconds(h, h->n_window) / (double)n_read,
                             .no_spaces = llm_word_has_no_spaces(t->code),
                             .piece = t->placed,
                             .n_pieces = t->n_segments};
    ggl_status st = llm_speech_words_find(&t->words, t->c->session, &t->tokens, &w, err);
    if (st == GGL_OK)
        st = llm_speech_words_place(&t->words, begin, begin + 0.001 * (double)ms, t->placed,
                                    t->n_segments, &t->last_end, err);
    if (st != GGL_OK)
        return st;
    if (t->words.n == 0)
        t->last_end = t->placed[t->n_segments - 1].end;
    else
        t->last_end = t->words.word[t->words.n - 1].end;
    const bool ends_alone = n_ids >= 2 && speech_is_time(&t->tokens, id[n_ids - 1]) &&
                            !speech_is_time(&t->tokens, id[n_ids - 2]);
    if (!ends_alone && t->last_end > begin)
        *next = (int64_t)(1000 * (t->last_end - begin) + 0.5);
    *next = *next < ms ? *next : ms;
    return GGL_OK;
}

/* Makes what the caller gets of the piece's words, and their texts. */
static ggl_status write_words(transcriber *t, const speech_piece *p, ggl_error *err) {
    size_t n = 0;
    if (!ggl_grow(&t->given, &t->cap_given, p->n_words, sizeof *t->given))
        return no_memory(err);
    for (size_t k = 0; k < p->n_words; k++) {
        const speech_word *x = &t->words.word[p->first + k];
        const size_t from = n;
        if (!append_mended(&t->word_text, &n, t->words.text + x->text, x->n_text))
            return no_memory(err);
        t->given[k] = (llm_word){
            .start = x->start, .end = x->end, .n = n - from, .probability = x->probability};
        n++; /* the NUL behind it */
    }
    n = 0;
    for (size_t k = 0; k < p->n_words; k++) { /* now they do not move any more */
        t->given[k].text = t->word_text.s + n;
        n += t->given[k].n + 1;
    }
    return GGL_OK;
}

/* Sets the times of a piece and its words to those of the sound. Of parts of it, a piece is as long as its words, which are known better. */
static void place_piece(transcriber *t, const speech_piece *p, double *start, double *end) {
    const size_t n = t->p.words ? p->n_words : 0;
    for (size_t k = 0; k < n; k++)
        llm_hearing_place_word(&t->h, &t->given[k].start, &t->given[k].end);
    llm_hearing_place_piece(&t->h, start, end);
    if (n > 0 && t->h.has_parts && t->given[n - 1].end > t->given[0].start) {
        *start = t->given[0].start;
        *end = t->given[n - 1].end;
    }
}

/* Gives the caller a piece of the window, and remembers its tokens. */
static ggl_status give_piece(transcriber *t, const speech_segment *s, const speech_piece *p,
                             ggl_error *err) {
    size_t n;
    ggl_status st = write_piece(t, s->id, s->n, &n, err);
    if (st != GGL_OK || p->end <= p->start || strspn(t->piece.s, " ") == n)
        return st;
    if (t->p.words)
        st = write_words(t, p, err);
    if (st != GGL_OK)
        return st;
    double start = p->start, end = p->end;
    place_piece(t, p, &start, &end);
    if (!ggl_grow(&t->said.id, &t->said.cap, t->said.n + s->n, sizeof *t->said.id))
        return no_memory(err);
    memcpy(t->said.id + t->said.n, s->id, s->n * sizeof *s->id);
    t->said.n += s->n;
    const llm_speech piece = {.start = start,
                              .end = end,
                              .text = t->piece.s,
                              .n = n,
                              .id = s->id,
                              .n_id = s->n,
                              .language = t->code,
                              .logprob = t->text.mean,
                              .no_speech = t->text.no_speech,
                              .temperature = t->text.temperature,
                              .word = t->given,
                              .n_words = t->p.words ? p->n_words : 0,
                              .compression_ratio = t->text.ratio};
    if (t->p.said && !t->p.said(t->p.user, t->piece.s, n))
        return stopped(err);
    return t->p.each && !t->p.each(t->p.user, &piece) ? stopped(err) : GGL_OK;
}

/* Writes down the window, of which n rows are sound, and moves on. */
static ggl_status write_window(transcriber *t, int64_t n, ggl_error *err) {
    const llm_transcribe_params *p = &t->p;
    llm_run_info *run = &t->c->run;
    ggl_status st = t->code[0] ? GGL_OK : detect(t, err);
    llm_hearing_cut(&t->h, n);
    if (st == GGL_OK && (!t->is_read || n < t->h.n_window))
        st = read_window(t, err);
    t->is_read = false;
    if (st != GGL_OK)
        return st;
    const size_t n_prompt = make_prompt(t);
    const speech_decoding d = {.rules = {&t->tokens, !p->no_times, FIRST_TIME},
                               .temperature = (double)p->temperature,
                               .step = (double)p->temperature_step,
                               .n_best = p->n_best > 0 ? p->n_best : LLM_SPEECH_TEXTS,
                               .n_beams = p->n_beams > 0 ? p->n_beams : LLM_SPEECH_TEXTS,
                               .least = (double)p->least_logprob,
                               .most_ratio = p->most_ratio > 0 ? (double)p->most_ratio : NAN,
                               .least_entropy = (double)p->least_entropy,
                               .no_speech = (double)p->no_speech,
                               .seed = p->seed,
                               .cancelled = is_cancelled,
                               .ctx = t->c};
    const double begin = ggl_os_seconds();
    st = llm_speech_decode(t->decoder, &d, t->prompt, n_prompt, t->at_start, &t->text, err);
    run->seconds += ggl_os_seconds() - begin;
    run->n_generated += t->text.n_written;
    if (st != GGL_OK)
        return st;
    const int64_t ms = (int64_t)(1000 * llm_hearing_seconds(&t->h, n) + 0.5);
    int64_t next = ms;
    t->n_segments = 0;
    t->sound_ms = ms;
    if (!(t->text.no_speech > d.no_speech && t->text.mean < d.least))
        next = llm_speech_cut(&t->tokens, t->text.ids.id, t->text.ids.n, ms, on_segment, t);
    if (t->is_full)
        return no_memory(err);
    if (p->words && t->n_segments > 0)
        st = find_words(t, n, ms, &next, err);
    for (size_t k = 0; k < t->n_segments && st == GGL_OK; k++)
        st = give_piece(t, &t->segment[k], &t->placed[k], err);
    if (p->no_context || t->text.temperature > 0.5)
        t->context = t->said.n;
    const int64_t rows =
        next > 0 && next < ms ? llm_hearing_rows_in(&t->h, 0.001 * (double)next) : n;
    t->at += rows > 0 ? rows : 1; /* a row may be longer than the time of a token */
    return st;
}

static double at_seconds(const transcriber *t) {
    return llm_hearing_seconds(&t->h, t->at);
}

static ggl_status write_all(transcriber *t, ggl_error *err) {
    int64_t n = 0;
    ggl_status st = GGL_OK;
    t->at = t->first;
    llm_hearing_tell_parts(&t->h, &t->p);
    while (st == GGL_OK && t->at < t->until) {
        st = llm_hearing_window(&t->h, t->at, t->until, &n, err);
        if (st == GGL_OK && n <= 0 && t->at == t->first)
            st = llm_hearing_tell_nothing(&t->h, &t->p, at_seconds(t), err);
        if (st != GGL_OK || n <= 0)
            break;
        st = write_window(t, n, err);
        if (st == GGL_OK)
            st = llm_hearing_tell_progress(&t->h, &t->p, at_seconds(t), err);
    }
    llm_hearing_tell_sound(&t->h, &t->p);
    return st;
}

/* llm_transcribe of a model whose tokens read rows of the sound. */
static ggl_status transcribe(transcriber *t, const char *path, ggl_error *err) {
    ggl_status st = t->c->stages ? check_texts(t, err) : GGL_OK;
    if (st == GGL_OK && t->p.live && t->c->stages)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "the model hears windows as a whole, and writes them down one after the "
                      "other, also of a pipe: leave out live (--live), or open a model such as "
                      "Voxtral Realtime");
    if (st == GGL_OK)
        st = llm_hearing_open(&t->h, t->c, path, &t->p, err);
    if (st == GGL_OK)
        st = open_tokens(t, err);
    if (st == GGL_OK)
        st = choose_language(t, err);
    if (st == GGL_OK)
        st = read_prompt(t, err);
    t->first = st == GGL_OK && !t->h.has_parts ? llm_hearing_rows_in(&t->h, t->p.offset) : 0;
    t->until = st == GGL_OK && t->p.duration > 0 && !t->h.has_parts
                   ? t->first + llm_hearing_rows_in(&t->h, t->p.duration)
                   : INT64_MAX;
    return st == GGL_OK ? write_all(t, err) : st;
}

static void free_all(transcriber *t) {
    llm_hearing_close(&t->h);
    llm_speech_decoder_free(t->decoder);
    llm_speech_tokens_fini(&t->tokens);
    llm_tokens_fini(&t->text.ids);
    llm_tokens_fini(&t->said);
    ggl_free(t->prompt);
    llm_speech_words_fini(&t->words);
    ggl_free(t->piece.s);
    ggl_free(t->raw.s);
    ggl_free(t->segment);
    ggl_free(t->placed);
    ggl_free(t->given);
    ggl_free(t->word_text.s);
}

ggl_status llm_transcribe(llm_context *c, const char *path, const llm_transcribe_params *params,
                          ggl_error *err) {
    transcriber t = {.c = c};
    ggl_error own;
    err = err ? err : &own;
    llm_context_start(c);
    ggl_status st = llm_transcribe_read(&t.p, params, err);
    if (st == GGL_OK)
        st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_clear(c, err);
    if (st == GGL_OK)
        st = !c->stages && llm_eye_sound(c->eye) ? llm_dictate(c, path, &t.p, NULL, err)
                                                 : transcribe(&t, path, err);
    c->run.finish = st == GGL_OK          ? LLM_FINISH_END
                    : st == GGL_CANCELLED ? LLM_FINISH_CANCELLED
                                          : LLM_FINISH_ERROR;
    free_all(&t);
    return st;
}

ggl_status llm_transcribe_by(llm_context *c, const char *path, const llm_transcribe_params *params,
                             const llm_transcribe_way *way, ggl_error *err) {
    transcriber t = {.c = c};
    const ggl_status st = llm_transcribe_read(&t.p, params, err);
    return st == GGL_OK ? llm_dictate(c, path, &t.p, way, err) : st;
}

const char *llm_language_name(const char *code) {
    return code ? llm_speech_language_name(code) : NULL;
}
