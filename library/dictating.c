/* llm_transcribe of a text model with an ear: the sound is cut where it is quiet, each part stands in a text that asks for what is said, and the answer is a piece. */
#include "dictating.h"

#include <string.h>

#include "dictating_live.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"

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
    ggl_status st = llm_dictation_begin(d, err);
    if (st == GGL_OK)
        st = llm_hearing_open_samples(&d->h, d->c, d->how, path, d->p, err);
    if (st == GGL_OK && d->code && !llm_asking_tells_language(&d->asking))
        llm_hearing_tell_note(d->p, "the model is not told the language: it finds it itself");
    return st == GGL_OK ? skip(d, err) : st;
}

/* Reads as many samples as come at once. */
static ggl_status read_samples(dictation *d, ggl_error *err) {
    const int64_t room = d->n_most + 1 - d->n, wanted = d->until - (d->at + d->n);
    int64_t n = room < LLM_DICTATION_PIECE ? room : LLM_DICTATION_PIECE, got = 0;
    ggl_status st = GGL_OK;
    n = n < wanted ? n : wanted;
    if (llm_context_is_cancelled(d->c))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    if (n > 0)
        st = llm_hearing_samples(&d->h, d->sample + d->n, n, &got, err);
    d->n += got;
    d->has_ended = got == 0;
    return st;
}

/* Reads samples until there is one more than a part has, or the sound ends. */
static ggl_status fill(dictation *d, ggl_error *err) {
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !d->has_ended && d->n <= d->n_most)
        st = read_samples(d, err);
    return st;
}

/* Runs the text in the context's own engine. */
static ggl_status run_here(dictation *d, const llm_sequence_params *p, ggl_error *err) {
    llm_sequence_params own = *p;
    own.in_slot = 1;
    ggl_status st = llm_context_give(d->c, err);
    if (st == GGL_OK)
        st = llm_engine_add(d->c->engine, &own, &d->id, err);
    if (st != GGL_OK)
        return st;
    while (st == GGL_OK && !d->is_over) {
        st = llm_engine_step(d->c->engine, err);
        if (st == GGL_OK)
            st = llm_dictation_tell(d, false, err);
        if (st == GGL_OK && !d->is_over && llm_context_is_cancelled(d->c))
            st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    }
    return llm_dictation_leave(d, st, err);
}

/* Gives the caller what was written so far. */
static bool look(void *ctx) {
    dictation *d = ctx;
    const ggl_status st = llm_dictation_tell(d, false, &d->err);
    d->st = d->st == GGL_OK ? st : d->st;
    return st == GGL_OK;
}

/* Draws the answer to d->prompt, to a part of so many seconds. */
static ggl_status answer(dictation *d, double seconds, ggl_error *err) {
    llm_sequence_params p;
    ggl_status st = llm_dictation_ask(d, seconds, &p, err);
    if (st == GGL_OK)
        st = d->way ? d->way->run(d->way->ctx, &p, look, err) : run_here(d, &p, err);
    return llm_dictation_answered(d, st, err);
}

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
    const double begin = ggl_os_seconds();
    llm_run_info *run = &d->c->run;
    ggl_status st = ask(d, n, mark, err);
    const double asked = ggl_os_seconds();
    if (st == GGL_OK)
        st = answer(d, (double)n / (double)d->how->rate, err);
    if (*mark)
        llm_unsee(d->c, mark);
    if (!d->way) {
        run->prompt_seconds += asked - begin;
        run->n_prompt += (int64_t)d->prompt.n;
        run->seconds += ggl_os_seconds() - asked;
        run->n_generated += d->n_drawn;
    }
    if (st == GGL_OK)
        st = llm_dictation_tell(d, true, err);
    return st == GGL_OK ? llm_dictation_end_part(d, n, err) : st;
}

static double at_seconds(const dictation *d) {
    return (double)d->at / (double)d->how->rate;
}

static ggl_status write_all(dictation *d, ggl_error *err) {
    llm_hearing_tell_parts(&d->h, d->p);
    ggl_status st = fill(d, err);
    llm_dictation_tell_language(d, d->code);
    if (st == GGL_OK && d->n == 0)
        st = llm_hearing_tell_nothing(&d->h, d->p, at_seconds(d), err);
    while (st == GGL_OK && d->n > 0) {
        st = write_part(d, llm_dictation_cut(d), err);
        if (st == GGL_OK)
            st = fill(d, err);
    }
    llm_hearing_tell_sound(&d->h, d->p);
    return st;
}

/* Reads samples as they come, and writes them down as far as they are known. */
static ggl_status write_live(dictation *d, ggl_error *err) {
    bool is_any = false;
    ggl_status st = GGL_OK;
    llm_dictation_tell_language(d, d->code);
    while (st == GGL_OK && !d->has_ended) {
        st = read_samples(d, err);
        is_any |= !d->has_ended;
        if (st == GGL_OK)
            st = llm_dictation_go_on(d, err);
    }
    if (st == GGL_OK && !is_any)
        st = llm_hearing_tell_nothing(&d->h, d->p, at_seconds(d), err);
    llm_hearing_tell_sound(&d->h, d->p);
    return st;
}

ggl_status llm_dictate(llm_context *c, const char *path, const llm_transcribe_params *p,
                       const llm_transcribe_way *way, ggl_error *err) {
    dictation d = {.c = c, .p = p, .way = way};
    ggl_status st = open(&d, path, err);
    if (st == GGL_OK)
        st = p->live ? write_live(&d, err) : write_all(&d, err);
    st = llm_dictation_stop(&d, st, err);
    llm_dictation_fini(&d);
    return st;
}
