/* Samples that a program gives piece by piece, and what is said in them: llm_live_begin .. of llm/senses.h. */
#include <math.h>
#include <string.h>

#include "dictating_live.h"
#include "ggl/internal/alloc.h"
#include "transcribing.h"

struct llm_live {
    llm_transcribe_params p;
    dictation d;
    bool is_inside; /* a call runs, whose callbacks must not free it */
};

static void close(llm_context *c) {
    (void)llm_dictation_stop(&c->live->d, GGL_CANCELLED, NULL);
    llm_dictation_fini(&c->live->d);
    ggl_free(c->live);
    c->live = NULL;
}

static void drop(llm_context *c) {
    if (c->live && !c->live->is_inside)
        close(c);
}

/* Checks what only a file has. */
static ggl_status check(const llm_transcribe_params *p, ggl_error *err) {
    const char *name = p->data           ? "data"
                       : p->raw          ? "raw"
                       : p->offset > 0   ? "offset"
                       : p->duration > 0 ? "duration"
                                         : NULL;
    return name ? ggl_fail(err, GGL_USAGE,
                           "%s is for a sound that llm_transcribe reads; samples that come piece "
                           "by piece are given to llm_live_hear",
                           name)
                : GGL_OK;
}

ggl_status llm_live_begin(llm_context *c, const llm_transcribe_params *params, int32_t *rate,
                          ggl_error *err) {
    if (c->live && c->live->is_inside)
        return ggl_fail(err, GGL_USAGE, "a callback of a sound cannot begin another one");
    llm_context_start(c);
    llm_live *l = ggl_calloc(1, sizeof *l);
    ggl_status st = l ? llm_transcribe_read(&l->p, params, err)
                      : ggl_fail(err, GGL_NOMEM, "out of memory for a sound");
    if (st == GGL_OK)
        st = check(&l->p, err);
    if (st == GGL_OK)
        st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_clear(c, err);
    if (st != GGL_OK) {
        ggl_free(l);
        return st;
    }
    c->live = l;
    c->drop_live = drop;
    l->p.live = true;
    l->d = (dictation){.c = c, .p = &l->p};
    st = c->stages ? ggl_fail(err, GGL_UNSUPPORTED,
                              "the model hears windows of %g seconds as a whole: llm_transcribe "
                              "writes them down one after the other; samples that come piece by "
                              "piece are for one such as Voxtral Realtime",
                              (double)llm_stages_n_most(c->stages) *
                                  (double)llm_stages_sound(c->stages)->step /
                                  (double)llm_stages_sound(c->stages)->rate)
                   : llm_dictation_begin(&l->d, err);
    if (st != GGL_OK) {
        close(c);
        return st;
    }
    llm_dictation_tell_language(&l->d, l->d.code);
    if (rate)
        *rate = (int32_t)l->d.how->rate;
    return GGL_OK;
}

/* Every call that goes on begins with this. */
static ggl_status enter(llm_context *c, ggl_error *err) {
    if (!c->live)
        return ggl_fail(err, GGL_USAGE,
                        "no sound was begun, or it has ended: call llm_live_begin first");
    if (c->live->is_inside)
        return ggl_fail(err, GGL_USAGE, "a callback of a sound cannot go on with it");
    llm_context_go_on(c);
    c->live->is_inside = true;
    return GGL_OK;
}

/* After a failure, or at its end, the sound is closed. */
static ggl_status leave(llm_context *c, ggl_status st, bool is_end) {
    c->live->is_inside = false;
    c->run.finish = st == GGL_OK          ? LLM_FINISH_END
                    : st == GGL_CANCELLED ? LLM_FINISH_CANCELLED
                                          : LLM_FINISH_ERROR;
    if (is_end || st != GGL_OK)
        close(c);
    return st;
}

ggl_status llm_live_hear(llm_context *c, const float *sample, size_t n, ggl_error *err) {
    ggl_error own;
    err = err ? err : &own;
    ggl_status st = enter(c, err);
    if (st != GGL_OK)
        return st;
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        if (!isfinite(sample[i]))
            st = ggl_fail(err, GGL_USAGE,
                          "sample %zu is no finite number; samples are -1 to 1 at full volume", i);
    dictation *d = &c->live->d;
    while (n > 0 && st == GGL_OK) {
        const size_t room = (size_t)(d->n_most + 1 - d->n), most = LLM_DICTATION_PIECE,
                     some = n < room ? n : room, now = some < most ? some : most;
        memcpy(d->sample + d->n, sample, now * sizeof *sample);
        d->n += (int64_t)now;
        sample += now;
        n -= now;
        st = llm_context_is_cancelled(c) ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
                                         : llm_dictation_go_on(d, err);
    }
    return leave(c, st, false);
}

ggl_status llm_live_end(llm_context *c, ggl_error *err) {
    ggl_error own;
    err = err ? err : &own;
    ggl_status st = enter(c, err);
    if (st != GGL_OK)
        return st;
    c->live->d.has_ended = true;
    return leave(c, llm_dictation_go_on(&c->live->d, err), true);
}
