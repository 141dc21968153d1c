#include "speech_run.h"

#include "ggl/internal/os_clock.h"
#include "ggl/internal/pass.h"

enum { LOOK_NS = 100000000 }; /* how often it is asked whether the answer is wanted */

typedef struct speaker {
    server *s;
    turn *t;
} speaker;

/* A text that runs in the engine. */
typedef struct running {
    speaker *of;
    const llm_sequence_params *p;
    llm_sequence_params own;
    uint64_t id;
    ggl_status st; /* of adding it */
    ggl_error err;
    bool (*look)(void *ctx);
    os_mutex lock;
    os_cond has_more; /* tokens, or its end */
    bool is_new, is_over;
} running;

/* --- on the engine's thread ------------------------------------------------------------------- */

static bool on_token(void *ctx, int32_t id, const float *logits) {
    running *r = ctx;
    ggl_os_mutex_lock(&r->lock);
    const bool goes_on = r->p->token(r->p->ctx, id, logits);
    r->is_new = true;
    ggl_os_cond_signal(&r->has_more);
    ggl_os_mutex_unlock(&r->lock);
    return goes_on;
}

static void on_end(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    running *r = ctx;
    r->of->s->n_said--;
    ggl_os_mutex_lock(&r->lock);
    r->p->ended(r->p->ctx, why, stats, err);
    r->is_over = true;
    ggl_os_cond_signal(&r->has_more);
    ggl_os_mutex_unlock(&r->lock);
}

static void add(void *ctx, llm_engine *e) {
    running *r = ctx;
    r->st = llm_engine_add(e, &r->own, &r->id, &r->err);
    r->of->s->n_said += r->st == GGL_OK;
}

static void cancel(void *ctx, llm_engine *e) {
    running *r = ctx;
    if (!r->is_over)
        llm_engine_cancel(e, r->id);
}

/* --- on the thread of sounds ------------------------------------------------------------------ */

/* Waits until the text has ended, which it also does when the server ends, and looks at its tokens meanwhile. The engine waits while it looks. */
static ggl_status wait_for_end(running *r, ggl_error *err) {
    const speaker *of = r->of;
    bool is_wanted = true, is_over = false;
    while (!is_over) {
        ggl_os_mutex_lock(&r->lock);
        if (!r->is_over && !r->is_new)
            (void)ggl_os_cond_wait_until(&r->has_more, &r->lock, ggl_os_clock() + LOOK_NS);
        is_over = r->is_over;
        const bool stops = is_wanted && r->is_new && !r->look(r->p->ctx);
        r->is_new = false;
        ggl_os_mutex_unlock(&r->lock);
        if (!is_over && is_wanted && (stops || turn_queue_stops(of->s->speech, of->t))) {
            is_wanted = false;
            (void)server_on_engine(of->s, cancel, r);
        }
    }
    return is_wanted ? GGL_OK : ggl_fail(err, GGL_CANCELLED, "the answer is not wanted any more");
}

static ggl_status run(void *ctx, const llm_sequence_params *p, bool (*look)(void *ctx),
                      ggl_error *err) {
    speaker *of = ctx;
    running r = {.of = of, .p = p, .own = *p, .look = look};
    r.own.client = of->t->client;
    r.own.token = on_token;
    r.own.ended = on_end;
    r.own.ctx = &r;
    ggl_os_mutex_init(&r.lock);
    ggl_os_cond_init(&r.has_more);
    ggl_status st = server_on_engine(of->s, add, &r)
                        ? GGL_OK
                        : ggl_fail(err, GGL_CANCELLED, "the server is ending");
    if (st == GGL_OK)
        st = r.st == GGL_OK ? wait_for_end(&r, err) : ggl_pass(err, &r.err);
    ggl_os_cond_destroy(&r.has_more);
    ggl_os_mutex_destroy(&r.lock);
    return st;
}

static void enter(void *ctx) {
    const speaker *of = ctx;
    looks_enter(of->s->looks, of->s->speech, of->t);
}

static void leave(void *ctx) {
    const speaker *of = ctx;
    looks_leave(of->s->looks);
}

ggl_status speech_run(server *s, turn *t, const llm_transcribe_params *p, ggl_error *err) {
    speaker of = {s, t};
    const llm_transcribe_way way = {.run = run, .enter = enter, .leave = leave, .ctx = &of};
    return llm_transcribe_by(s->ctx, SOUND_NAME, p, &way, err);
}
