#include "dictation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"
#include "llm/internal/logprobs.h"
#include "speech/speech_tokens.h"
#include "speech/zlib_size.h"

enum {
    QUIETEST = 10,         /* a part ends in the quietest 1 / QUIETEST seconds */
    SEARCHED = 5,          /* of its last seconds */
    TOKENS_PER_SECOND = 40 /* more than anybody says: a text with more does not end by itself */
};

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for what is heard");
}

static void warn(const dictation *d, const char *text) {
    if (d->p->warn)
        d->p->warn(d->p->user, text);
    else
        llm_hearing_tell_note(d->p, text);
}

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status choose_language(dictation *d, ggl_error *err) {
    const char *name = d->p->language;
    if (!name || strcmp(name, "auto") == 0)
        return GGL_OK;
    d->code = llm_speech_code_of(name, strlen(name));
    return d->code ? GGL_OK
                   : ggl_fail(err, GGL_USAGE,
                              "the language '%s' is not known; give a code (de) or an English name "
                              "(german)",
                              name);
}

static ggl_status check(const dictation *d, ggl_error *err) {
    if (d->p->words)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "a text model with an ear does not show when words are said; a model such "
                        "as Whisper does (words)");
    if (d->p->live && (d->p->vad_model || d->way))
        return ggl_fail(err, GGL_USAGE,
                        "a sound that is written down while it comes cannot be searched for speech "
                        "before: leave out vad_model, or live");
    const ggl_status st = d->p->live ? llm_ear_flow_check(d->ear, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    return d->c->tokenizer ? llm_context_check_writes(d->c, false, err)
                           : ggl_pass(err, &d->c->why_no_tokenizer);
}

/* Finds how long a part is at most: no longer than the section says, nor than leaves half of the context to the text, unless that is in the sound's rows: then these are of one window,
 * of which each hears all before it. */
static ggl_status choose_parts(dictation *d, ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(d->c->session),
                  n_window = llm_eye_rows_made(d->ear, d->ear->n_most),
                  n_rows = d->how->added == 0 ? n_ctx / 2
                           : n_ctx < n_window ? n_ctx
                                              : n_window,
                  fits = llm_ear_most_samples(d->ear, n_rows),
                  wanted = (int64_t)(d->asking.how->longest * (double)d->how->rate);
    if (fits < d->how->rate) {
        const int64_t least = llm_ear_least_rows(d->ear);
        return ggl_fail(err, GGL_LIMIT,
                        "the shortest sound takes %" PRId64 " tokens, and what is said as many "
                        "more, but the context has %" PRId64
                        ": open the model with more (n_ctx, or -c)",
                        least, n_ctx);
    }
    d->n_most = wanted < fits ? wanted : fits;
    d->sample = ggl_calloc((size_t)d->n_most + 1, sizeof *d->sample);
    return d->sample ? GGL_OK : no_memory(err);
}

ggl_status llm_dictation_begin(dictation *d, ggl_error *err) {
    ggl_status st = llm_eye_need(d->c, &llm_eye_sounds, &d->ear, err);
    d->how = d->h.how = llm_eye_sound(d->c->eye);
    if (st == GGL_OK)
        st = check(d, err);
    if (st == GGL_OK)
        st = choose_language(d, err);
    const asking_wishes wishes = {
        .language = d->code, .prompt = d->p->prompt, .translate = d->p->translate};
    if (st == GGL_OK)
        st = llm_asking_open(&d->asking, d->c, d->ear, &wishes, err);
    return st == GGL_OK ? choose_parts(d, err) : st;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* The sample from which on the end of a part is searched for. */
static int64_t first_searched(const dictation *d) {
    const int64_t searched = SEARCHED * d->how->rate;
    return d->n_most - (searched < d->n_most / 2 ? searched : d->n_most / 2);
}

int64_t llm_dictation_certain(const dictation *d) {
    const int64_t first = first_searched(d);
    return d->n < first ? d->n : first;
}

/* That is all, or up to the middle of the quietest stretch near its end. */
int64_t llm_dictation_cut(const dictation *d) {
    const int64_t n_quiet = d->how->rate / QUIETEST, first = first_searched(d);
    double sum = 0, least = 0;
    int64_t at = d->n_most;
    if (d->n <= d->n_most)
        return d->n;
    for (int64_t i = first; i < d->n_most; i++) {
        const double new = (double)d->sample[i], old = (double)d->sample[i - n_quiet];
        sum += new *new - (i >= first + n_quiet ? old * old : 0);
        if (i + 1 < first + n_quiet || (at < d->n_most && sum > least))
            continue;
        least = sum;
        at = i + 1 - n_quiet / 2;
    }
    return at;
}

/* --- the answer ------------------------------------------------------------------------------- */

/* The text of a token; also of the control token behind which the written text begins. */
static ggl_str text_of(const dictation *d, int32_t id) {
    const llm_tokenizer *t = d->c->tokenizer;
    const ggl_str s = llm_token_text(t, id, false), shown = llm_token_text(t, id, true);
    const char *after = d->asking.how->after;
    return s.n == 0 && after && ggl_str_is(shown, after) ? shown : s;
}

static bool on_token(void *ctx, int32_t id, const float *logits) {
    dictation *d = ctx;
    const int32_t n_vocab = (int32_t)llm_session_n_vocab(d->c->session);
    if (logits) {
        const llm_logprobs_base b = llm_logprobs_base_of(logits, n_vocab);
        d->logprob += llm_logprob_at(&b, logits, id);
    }
    d->n_drawn++;
    if (llm_tokenizer_is_eog(d->c->tokenizer, id))
        return true;
    const ggl_str s = text_of(d, id);
    d->lacks_room |= llm_tokens_append(&d->ids, id, NULL) != GGL_OK ||
                     !ggl_grow(&d->raw, &d->cap_raw, d->n_raw + s.n + 1, 1);
    if (d->lacks_room)
        return false;
    memcpy(d->raw + d->n_raw, s.s, s.n);
    d->n_raw += s.n;
    return true;
}

static void on_end(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    dictation *d = ctx;
    (void)stats;
    d->is_over = true;
    d->why = why;
    if (err)
        d->st = ggl_pass(&d->err, err);
}

ggl_status llm_dictation_ask(dictation *d, double seconds, llm_sequence_params *p, ggl_error *err) {
    llm_sampler_params sampling = llm_sampler_default();
    sampling.temp = d->p->temperature;
    sampling.seed = d->p->seed;
    sampling.tokenizer = d->c->tokenizer;
    sampling.stage[0] = LLM_SAMPLER_TEMPERATURE;
    sampling.n_stages = 1;
    const int64_t most = 100 + (int64_t)(TOKENS_PER_SECOND * seconds);
    const llm_job_params jp = {.n_vocab = llm_session_n_vocab(d->c->session),
                               .n_ctx = llm_session_n_ctx(d->c->session),
                               .sampling = &sampling,
                               .way = {.n_max = most}};
    d->ids.n = 0;
    d->n_raw = d->n_told = 0;
    d->n_drawn = 0;
    d->logprob = 0;
    d->is_over = false;
    d->st = GGL_OK;
    const ggl_status st = llm_job_parts_new(&d->parts, &jp, NULL, err);
    d->is_drawing = st == GGL_OK;
    if (st != GGL_OK)
        return st;
    *p = (llm_sequence_params){.size = sizeof *p,
                               .prompt = d->prompt.id,
                               .n_prompt = d->prompt.n,
                               .token = on_token,
                               .ended = on_end,
                               .ctx = d};
    llm_job_describe(&d->parts, p);
    return GGL_OK;
}

ggl_status llm_dictation_leave(dictation *d, ggl_status st, ggl_error *err) {
    if (!d->is_over)
        llm_engine_cancel(d->c->engine, d->id);
    const ggl_status erased = llm_context_erase(d->c, st == GGL_OK ? err : NULL);
    return st == GGL_OK ? erased : st;
}

ggl_status llm_dictation_answered(dictation *d, ggl_status st, ggl_error *err) {
    if (d->is_drawing)
        llm_job_parts_fini(&d->parts);
    d->is_drawing = false;
    if (st == GGL_OK && d->lacks_room)
        st = no_memory(err);
    if ((st == GGL_OK || st == GGL_CANCELLED) && d->st != GGL_OK)
        st = ggl_pass(err, &d->err);
    if (st == GGL_OK && (d->why == LLM_END_CANCELLED || d->why == LLM_END_DEADLINE))
        st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    return st;
}

/* Sets d->text to UTF-8 of what is said; of its beginning with a space before it that joins it to the piece before, unless the script has none. */
static ggl_status write_text(dictation *d, const char *s, size_t n, bool begins, size_t *n_text,
                             ggl_error *err) {
    size_t k = 0;
    if (!ggl_grow(&d->text, &d->cap_text, 3 * n + 2, 1))
        return no_memory(err);
    const bool is_joined = n > 0 && (unsigned char)s[0] >= 0xe3 && (unsigned char)s[0] < 0xee;
    if (begins && n > 0 && !is_joined) /* U+3000 and more: kana, ideographs, hangul */
        d->text[k++] = ' ';
    k += llm_hearing_mend(d->text + k, s, n);
    d->text[k] = 0;
    *n_text = k;
    return GGL_OK;
}

void llm_dictation_tell_language(dictation *d, const char *code) {
    if (!d->code && code)
        d->code = code;
    if (d->code && code && d->p->spoken)
        d->p->spoken(d->p->user, d->code);
}

/* Returns how many bytes of a character that is not complete are at the end of s[0..n). */
static size_t incomplete(const char *s, size_t n) {
    size_t k = 1;
    while (k < 3 && k < n && ((unsigned char)s[n - k] & 0xc0) == 0x80)
        k++;
    const unsigned char first = n > 0 ? (unsigned char)s[n - k] : 0;
    const size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return whole > k ? k : 0;
}

ggl_status llm_dictation_tell(dictation *d, bool is_last, ggl_error *err) {
    const bool is_plain = llm_asking_is_plain(&d->asking), begins = d->n_told == 0;
    const char *said, *code;
    size_t n, n_text = 0;
    if (!d->p->said || d->n_raw == 0 || (!is_plain && !is_last))
        return GGL_OK;
    llm_asking_read(&d->asking, d->raw,
                    is_last ? d->n_raw : d->n_raw - incomplete(d->raw, d->n_raw), &said, &n, &code);
    if (!begins) { /* the spaces before the next word are not around what is said */
        const char *end = said + n;
        said = d->raw + d->n_told;
        n = end > said ? (size_t)(end - said) : 0;
    }
    if (n == 0)
        return GGL_OK;
    d->n_told = (size_t)(said + n - d->raw);
    const ggl_status st = write_text(d, said, n, begins, &n_text, err);
    if (st != GGL_OK)
        return st;
    return d->p->said(d->p->user, d->text, n_text)
               ? GGL_OK
               : ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
}

static ggl_status give_piece(dictation *d, double start, double end, ggl_error *err) {
    const char *said, *code = NULL;
    size_t n_said, n = 0, n_zlib = 0;
    llm_asking_read(&d->asking, d->raw ? d->raw : "", d->n_raw, &said, &n_said, &code);
    if (!d->code)
        llm_dictation_tell_language(d, code);
    if (n_said == 0)
        return GGL_OK;
    ggl_status st = write_text(d, said, n_said, true, &n, err);
    if (st == GGL_OK)
        st = llm_zlib_size(said, n_said, &n_zlib, err);
    if (st != GGL_OK)
        return st;
    llm_hearing_place_piece(&d->h, &start, &end);
    const llm_speech piece = {.start = start,
                              .end = end,
                              .text = d->text,
                              .n = n,
                              .id = d->ids.id,
                              .n_id = d->ids.n,
                              .language = d->code ? d->code : "",
                              .logprob = d->n_drawn > 0 ? d->logprob / (double)d->n_drawn : 0,
                              .temperature = (double)d->p->temperature,
                              .compression_ratio =
                                  n_zlib > 0 ? (double)n_said / (double)n_zlib : 0};
    return d->p->each && !d->p->each(d->p->user, &piece)
               ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
               : GGL_OK;
}

/* Says so if the text of a part did not end by itself. Rows that are added to tokens end it where the sound does. */
static void warn_of_end(const dictation *d, double start, double end) {
    char text[300], why[160];
    const bool is_cut = d->why == LLM_END_CONTEXT || (d->why == LLM_END_MAX && d->how->added == 0);
    if (!is_cut)
        return;
    if (d->why == LLM_END_CONTEXT)
        snprintf(why, sizeof why,
                 "which with the sound fill the context of %" PRId64
                 " tokens: open the model with more (n_ctx, or -c)",
                 llm_session_n_ctx(d->c->session));
    else
        snprintf(why, sizeof why, "more than anybody says in that time");
    snprintf(text, sizeof text,
             "the text of what is said from %.1f to %.1f s is cut after %" PRId64 " tokens, %s",
             start, end, d->n_drawn, why);
    warn(d, text);
}

ggl_status llm_dictation_end_part(dictation *d, int64_t n, ggl_error *err) {
    const double rate = (double)d->how->rate, start = (double)d->at / rate,
                 end = (double)(d->at + n) / rate;
    warn_of_end(d, start, end);
    const ggl_status st = give_piece(d, start, end, err);
    d->at += n;
    d->n -= n;
    memmove(d->sample, d->sample + n, (size_t)d->n * sizeof *d->sample);
    return st == GGL_OK ? llm_hearing_tell_progress(&d->h, d->p, (double)d->at / rate, err) : st;
}

void llm_dictation_fini(dictation *d) {
    if (d->is_drawing)
        llm_job_parts_fini(&d->parts);
    llm_ear_flow_free(d->flow);
    llm_hearing_close(&d->h);
    llm_tokens_fini(&d->prompt);
    llm_tokens_fini(&d->ids);
    ggl_free(d->sample);
    ggl_free(d->raw);
    ggl_free(d->text);
}
