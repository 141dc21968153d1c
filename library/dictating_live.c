/* Sound that is written down while it comes: the ear hears each sample once, and the text has a token for each row, as soon as there is one. Parts end where those of a sound end that
 * is there as a whole (dictating.c), so the tokens are the same. */
#include "dictating_live.h"

#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"

/* Begins the text of a part. */
static ggl_status begin_part(dictation *d, ggl_error *err) {
    llm_sequence_params p;
    ggl_status st = llm_ear_flow_new(&d->flow, d->ear, d->n_most, err);
    d->n_heard = 0;
    if (st == GGL_OK)
        st = llm_asking_prompt(&d->asking, llm_ear_flow_mark(d->flow), &d->prompt, err);
    if (st == GGL_OK)
        st = llm_dictation_ask(d, (double)d->n_most / (double)d->how->rate, &p, err);
    if (st == GGL_OK)
        st = llm_context_give(d->c, err);
    if (st != GGL_OK)
        return st;
    p.in_slot = 1;
    p.no_reuse = true; /* what another text had in place of these rows is no part of it */
    p.no_guesses = true;
    d->c->run.n_prompt += (int64_t)d->prompt.n;
    return llm_engine_add(d->c->engine, &p, &d->id, err);
}

/* How many tokens may be drawn so far: each reads a row more, and none the last row of a sound. */
static int64_t most_drawn(const dictation *d) {
    const int64_t n = llm_ear_flow_n_rows(d->flow) - (int64_t)d->prompt.n;
    const bool more_will_come = !llm_ear_flow_has_ended(d->flow) && d->how->trail >= d->how->unit;
    return more_will_come ? n + 1 : n;
}

/* Writes as many tokens as there are rows for. */
static ggl_status write_tokens(dictation *d, ggl_error *err) {
    const double begin = ggl_os_seconds();
    const int64_t before = d->n_drawn;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !d->is_over && d->n_drawn < most_drawn(d)) {
        st = llm_engine_step(d->c->engine, err);
        if (st == GGL_OK)
            st = llm_dictation_tell(d, false, err);
        if (st == GGL_OK && !d->is_over && llm_context_is_cancelled(d->c))
            st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    }
    if (st == GGL_OK && !d->is_over && llm_ear_flow_has_ended(d->flow)) {
        llm_engine_cancel(d->c->engine, d->id);
        d->why =
            LLM_END_MAX; /* as of a text that knows from the first token on how many rows there are */
    }
    d->c->run.seconds += ggl_os_seconds() - begin;
    d->c->run.n_generated += d->n_drawn - before;
    return st;
}

/* Plays samples up to `end` of the part to the ear, a piece at a time, and writes what follows from each. */
static ggl_status hear(dictation *d, int64_t end, bool is_last, ggl_error *err) {
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !d->is_over &&
           (d->n_heard < end || (is_last && !llm_ear_flow_has_ended(d->flow)))) {
        const int64_t left = end - d->n_heard,
                      n = left < LLM_DICTATION_PIECE ? left : LLM_DICTATION_PIECE;
        const double begin = ggl_os_seconds();
        st = llm_ear_flow_hear(d->flow, d->sample + d->n_heard, n, is_last && n == left, err);
        d->n_heard += n;
        d->c->run.prompt_seconds += ggl_os_seconds() - begin;
        if (st == GGL_OK)
            st = write_tokens(d, err);
    }
    return st;
}

ggl_status llm_dictation_stop(dictation *d, ggl_status st, ggl_error *err) {
    if (!d->flow)
        return st;
    st = llm_dictation_leave(d, st, err);
    st = llm_dictation_answered(d, st, err);
    llm_ear_flow_free(d->flow);
    d->flow = NULL;
    return st;
}

ggl_status llm_dictation_go_on(dictation *d, ggl_error *err) {
    ggl_status st = GGL_OK;
    bool is_known = true;
    while (st == GGL_OK && is_known && d->n > 0) {
        is_known = d->has_ended || d->n > d->n_most;
        const int64_t end = is_known ? llm_dictation_cut(d) : llm_dictation_certain(d);
        if (!d->flow)
            st = begin_part(d, err);
        if (st == GGL_OK)
            st = hear(d, end, is_known, err);
        if (st != GGL_OK || is_known)
            st = llm_dictation_stop(d, st, err);
        if (st == GGL_OK && is_known)
            st = llm_dictation_tell(d, true, err);
        if (st == GGL_OK && is_known)
            st = llm_dictation_end_part(d, end, err);
    }
    return st;
}
