/* Changes the scales of a context's adapters. */
#include <math.h>

#include "context.h"
#include "copies.h"
#include "ggl/internal/alloc.h"
#include "senses.h"

/* Replaces the session and its engine by others that use the scales of today. */
static ggl_status renew(llm_context *c, ggl_error *err) {
    llm_session **session = ggl_calloc((size_t)llm_copies_n(c), sizeof *session);
    llm_engine *engine = NULL;
    bool is_own;
    if (!session)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st =
        llm_placement_session(c->placement, &session[0], c->model, &c->session_params, err);
    if (st == GGL_OK)
        st = llm_copies_make(c, &c->session_params, NULL, NULL, session, err);
    if (st == GGL_OK)
        st = llm_copies_alloc(c, session, &is_own, err);
    if (st == GGL_OK)
        st = llm_context_make_engine(&engine, c, session[0], err);
    if (st == GGL_OK && c->eye)
        st = llm_eye_adapt(c->eye, c->adapter, c->n_adapters, err);
    if (st == GGL_OK) {
        llm_guessing_follow(c->guessing, session[0]);
        llm_engine_free(c->engine);
        llm_session_free(c->session);
        llm_copies_take(c, session);
        c->engine = engine;
        c->session = session[0];
    } else {
        llm_engine_free(engine);
        llm_copies_free(c, session);
        llm_session_free(session[0]);
    }
    ggl_free(session);
    return st;
}

ggl_status llm_set_adapter_scale(llm_context *c, size_t k, double scale, ggl_error *err) {
    atomic_store(&c->cancelled, false);
    if (k >= c->n_adapters)
        return ggl_fail(err, GGL_USAGE, "there is no adapter %zu; the context has %zu", k,
                        c->n_adapters);
    if (!isfinite((float)scale))
        return ggl_fail(err, GGL_USAGE, "the scale must be finite, but is %g", scale);
    const double before = c->adapter[k].scale;
    ggl_status st = llm_context_take(c, err);
    if (st != GGL_OK)
        return st;
    c->adapter[k].scale = scale;
    st = scale == before ? GGL_OK : renew(c, err);
    if (st == GGL_OK)
        return llm_context_clear(c, err);
    c->adapter[k].scale = before;
    return st;
}
