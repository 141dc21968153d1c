/* llm_transcribe of a text model with an ear: the sound is cut where it is quiet, each part stands in a text that asks for what is said, and the answer is a piece. */
#include "dictating.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "asking.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"
#include "hearing.h"
#include "job_parts.h"
#include "llm/internal/logprobs.h"
#include "noticing.h"
#include "speech/speech_tokens.h"
#include "speech/zlib_size.h"

enum {
    PIECE = 1 << 16,       /* samples that are read at once */
    QUIETEST = 10,         /* a part ends in the quietest 1 / QUIETEST seconds */
    SEARCHED = 5,          /* of its last seconds */
    TOKENS_PER_SECOND = 40 /* more than anybody says: a text with more does not end by itself */
};

typedef struct dictation {
    llm_context *c;
    const llm_transcribe_params *p;
    const llm_transcribe_way *way;
    llm_eye *ear;
    const llm_arch_sound *how;
    asking asking;
    hearing h;
    const char *code; /* of the language; NULL: not known */
    float *sample;    /* [n_most + 1]: those that were read and not written down yet */
    int64_t n_most, n;
    int64_t at;     /* the first of them, of what is heard */
    int64_t until;  /* what is heard from there on is not wanted */
    bool has_ended; /* the sound, or what of it is wanted */
    llm_tokens prompt;
    /* The answer: its tokens and their text, as it comes; */
    llm_tokens ids;
    char *raw, *text; /* and as UTF-8, with a space before it */
    size_t n_raw, cap_raw, cap_text;
    double logprob; /* of all its tokens */
    int64_t n_drawn;
    bool is_over, lacks_room;
    llm_end why;
    ggl_status st;
    ggl_error err;
} dictation;

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
    return d->c->tokenizer ? llm_context_check_writes(d->c, false, err)
                           : ggl_pass(err, &d->c->why_no_tokenizer);
}

/* Finds how long a part is at most: no longer than the section says, nor than leaves half of the context to the text, unless that is in the sound's rows. */
static ggl_status choose_parts(dictation *d, ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(d->c->session),
                  n_rows = d->how->added > 0 ? n_ctx : n_ctx / 2,
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

/* Skips what is before the offset. Parts that a model has found lie in the seconds that are wanted. */
static ggl_status skip(dictation *d, ggl_error *err) {
    const double rate = (double)d->how->rate;
    int64_t got = 1;
    ggl_status st = GGL_OK;
    d->until = INT64_MAX;
    if (d->h.has_parts)
        return GGL_OK;
    const int64_t first = (int64_t)(d->p->offset * rate);
    while (st == GGL_OK && d->at < first && got > 0) {
        const int64_t left = first - d->at, n = left < d->n_most ? left : d->n_most;
        if (llm_context_is_cancelled(d->c))
            return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
        st = llm_hearing_samples(&d->h, d->sample, n, &got, err);
        d->at += st == GGL_OK ? got : 0;
    }
    if (st == GGL_OK && d->p->duration > 0)
        d->until = first + (int64_t)(d->p->duration * rate);
    return st;
}

static ggl_status open(dictation *d, const char *path, ggl_error *err) {
    ggl_status st = llm_eye_need(d->c, &llm_eye_sounds, &d->ear, err);
    d->how = llm_eye_sound(d->c->eye);
    if (st == GGL_OK)
        st = check(d, err);
    if (st == GGL_OK)
        st = choose_language(d, err);
    const asking_wishes wishes = {
        .language = d->code, .prompt = d->p->prompt, .translate = d->p->translate};
    if (st == GGL_OK)
        st = llm_asking_open(&d->asking, d->c, d->ear, &wishes, err);
    if (st == GGL_OK)
        st = choose_parts(d, err);
    if (st == GGL_OK)
        st = llm_hearing_open_samples(&d->h, d->c, d->how, path, d->p, err);
    if (st == GGL_OK && d->code && !llm_asking_tells_language(&d->asking))
        llm_hearing_tell_note(d->p, "the model is not told the language: it finds it itself");
    return st == GGL_OK ? skip(d, err) : st;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* Reads samples until there is one more than a part has, or the sound ends. */
static ggl_status fill(dictation *d, ggl_error *err) {
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !d->has_ended && d->n <= d->n_most) {
        const int64_t room = d->n_most + 1 - d->n, wanted = d->until - (d->at + d->n);
        int64_t n = room < PIECE ? room : PIECE, got = 0;
        n = n < wanted ? n : wanted;
        if (llm_context_is_cancelled(d->c))
            return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
        if (n > 0)
            st = llm_hearing_samples(&d->h, d->sample + d->n, n, &got, err);
        d->n += got;
        d->has_ended = got == 0;
    }
    return st;
}

/* Returns how many of the samples are the next part: all, or up to the middle of the quietest stretch near its end. */
static int64_t cut(const dictation *d) {
    const int64_t n_quiet = d->how->rate / QUIETEST, searched = SEARCHED * d->how->rate,
                  first = d->n_most - (searched < d->n_most / 2 ? searched : d->n_most / 2);
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

/* The text of a token; also of a control token that comes before what is said. */
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

/* Runs the text in the context's own engine. */
static ggl_status run_here(dictation *d, const llm_sequence_params *p, ggl_error *err) {
    llm_sequence_params own = *p;
    uint64_t id = 0;
    own.in_slot = 1;
    ggl_status st = llm_context_give(d->c, err);
    if (st == GGL_OK)
        st = llm_engine_add(d->c->engine, &own, &id, err);
    if (st != GGL_OK)
        return st;
    while (st == GGL_OK && !d->is_over) {
        st = llm_engine_step(d->c->engine, err);
        if (st == GGL_OK && !d->is_over && llm_context_is_cancelled(d->c))
            st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    }
    if (!d->is_over)
        llm_engine_cancel(d->c->engine, id);
    const ggl_status erased = llm_context_erase(d->c, st == GGL_OK ? err : NULL);
    return st == GGL_OK ? erased : st;
}

/* Draws the answer to d->prompt, to a part of so many seconds. */
static ggl_status answer(dictation *d, double seconds, ggl_error *err) {
    llm_sampler_params sampling = llm_sampler_default();
    llm_job_parts parts;
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
    d->n_raw = 0;
    d->n_drawn = 0;
    d->logprob = 0;
    d->is_over = false;
    d->st = GGL_OK;
    ggl_status st = llm_job_parts_new(&parts, &jp, NULL, err);
    if (st == GGL_OK) {
        llm_sequence_params p = {.size = sizeof p,
                                 .prompt = d->prompt.id,
                                 .n_prompt = d->prompt.n,
                                 .token = on_token,
                                 .ended = on_end,
                                 .ctx = d};
        llm_job_describe(&parts, &p);
        st = d->way ? d->way->run(d->way->ctx, &p, err) : run_here(d, &p, err);
    }
    llm_job_parts_fini(&parts);
    if (st == GGL_OK && d->lacks_room)
        st = no_memory(err);
    if (st == GGL_OK && d->st != GGL_OK)
        st = ggl_pass(err, &d->err);
    if (st == GGL_OK && (d->why == LLM_END_CANCELLED || d->why == LLM_END_DEADLINE))
        st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    return st;
}

/* Sets d->text to UTF-8 of what is said, with a space before it that joins it to the piece before, unless the script has none. */
static ggl_status write_text(dictation *d, const char *s, size_t n, size_t *n_text,
                             ggl_error *err) {
    size_t k = 0;
    if (!ggl_grow(&d->text, &d->cap_text, 3 * n + 2, 1))
        return no_memory(err);
    const bool is_joined = n > 0 && (unsigned char)s[0] >= 0xe3 && (unsigned char)s[0] < 0xee;
    if (n > 0 && !is_joined) /* U+3000 and more: kana, ideographs, hangul */
        d->text[k++] = ' ';
    k += llm_hearing_mend(d->text + k, s, n);
    d->text[k] = 0;
    *n_text = k;
    return GGL_OK;
}

/* Tells the language, once it is known. */
static void set_language(dictation *d, const char *code) {
    if (!d->code && code)
        d->code = code;
    if (d->code && code && d->p->spoken)
        d->p->spoken(d->p->user, d->code);
}

static ggl_status give_piece(dictation *d, double start, double end, ggl_error *err) {
    const char *said, *code = NULL;
    size_t n_said, n = 0, n_zlib = 0;
    llm_asking_read(&d->asking, d->raw ? d->raw : "", d->n_raw, &said, &n_said, &code);
    if (!d->code)
        set_language(d, code);
    if (n_said == 0)
        return GGL_OK;
    ggl_status st = write_text(d, said, n_said, &n, err);
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

/* --- all parts -------------------------------------------------------------------------------- */

/* Plays n samples to the ear, and makes the prompt. */
static ggl_status ask(dictation *d, int64_t n, char mark[LLM_IMAGE_MARK], ggl_error *err) {
    const llm_audio audio = {.data = d->sample,
                             .n = (size_t)n * sizeof *d->sample,
                             .name = d->h.name,
                             .raw = "f32le",
                             .raw_rate = (int32_t)d->how->rate,
                             .raw_channels = 1};
    if (d->way)
        d->way->enter(d->way->ctx);
    ggl_status st = llm_eye_listen(d->c, &audio, mark, err);
    if (d->way)
        d->way->leave(d->way->ctx);
    return st == GGL_OK ? llm_asking_prompt(&d->asking, mark, &d->prompt, err) : st;
}

static ggl_status write_part(dictation *d, int64_t n, ggl_error *err) {
    char mark[LLM_IMAGE_MARK] = "";
    const double rate = (double)d->how->rate, start = (double)d->at / rate,
                 end = (double)(d->at + n) / rate, begin = ggl_os_seconds();
    llm_run_info *run = &d->c->run;
    ggl_status st = ask(d, n, mark, err);
    const double asked = ggl_os_seconds();
    if (st == GGL_OK)
        st = answer(d, end - start, err);
    if (*mark)
        llm_unsee(d->c, mark);
    if (!d->way) {
        run->prompt_seconds += asked - begin;
        run->n_prompt += (int64_t)d->prompt.n;
        run->seconds += ggl_os_seconds() - asked;
        run->n_generated += d->n_drawn;
    }
    if (st == GGL_OK)
        warn_of_end(d, start, end);
    if (st == GGL_OK)
        st = give_piece(d, start, end, err);
    d->at += n;
    d->n -= n;
    memmove(d->sample, d->sample + n, (size_t)d->n * sizeof *d->sample);
    return st;
}

static double at_seconds(const dictation *d) {
    return (double)d->at / (double)d->how->rate;
}

static ggl_status write_all(dictation *d, ggl_error *err) {
    llm_hearing_tell_parts(&d->h, d->p);
    ggl_status st = fill(d, err);
    set_language(d, d->code);
    if (st == GGL_OK && d->n == 0)
        st = llm_hearing_tell_nothing(&d->h, d->p, at_seconds(d), err);
    while (st == GGL_OK && d->n > 0) {
        st = write_part(d, cut(d), err);
        if (st == GGL_OK)
            st = llm_hearing_tell_progress(&d->h, d->p, at_seconds(d), err);
        if (st == GGL_OK)
            st = fill(d, err);
    }
    llm_hearing_tell_sound(&d->h, d->p);
    return st;
}

ggl_status llm_dictate(llm_context *c, const char *path, const llm_transcribe_params *p,
                       const llm_transcribe_way *way, ggl_error *err) {
    dictation d = {.c = c, .p = p, .way = way};
    ggl_status st = open(&d, path, err);
    if (st == GGL_OK)
        st = write_all(&d, err);
    llm_hearing_close(&d.h);
    llm_tokens_fini(&d.prompt);
    llm_tokens_fini(&d.ids);
    ggl_free(d.sample);
    ggl_free(d.raw);
    ggl_free(d.text);
    return st;
}
