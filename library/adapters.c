#include "adapters.h"

#include <math.h>

#include "guessing.h"

static ggl_status open_adapter(llm_context *c, const llm_lora *from, ggl_error *err) {
    llm_adapter *a;
    if (!from->path)
        return ggl_fail(err, GGL_USAGE, "adapter[%zu].path is NULL", c->n_adapters);
    if (!isfinite((float)from->scale))
        return ggl_fail(err, GGL_USAGE, "adapter[%zu].scale must be finite, but is %g",
                        c->n_adapters, from->scale);
    ggl_status st = llm_adapter_open(&a, from->path, NULL, err);
    if (st != GGL_OK)
        return st;
    c->adapter[c->n_adapters++] = (llm_adapter_use){a, from->scale};
    return llm_adapter_check(a, c->model, err);
}

ggl_status llm_adapters_open(llm_context *c, const llm_open_params *p, ggl_error *err) {
    if (p->n_adapters == 0)
        return GGL_OK;
    if (!p->adapter)
        return ggl_fail(err, GGL_USAGE, "adapter is NULL; n_adapters is %zu", p->n_adapters);
    c->adapter = ggl_calloc(p->n_adapters, sizeof *c->adapter);
    if (!c->adapter)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu adapters", p->n_adapters);
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < p->n_adapters && st == GGL_OK; i++)
        st = open_adapter(c, &p->adapter[i], err);
    return st;
}

void llm_adapters_close(llm_context *c) {
    for (size_t i = 0; i < c->n_adapters; i++)
        llm_adapter_free((llm_adapter *)c->adapter[i].adapter);
    ggl_free(c->adapter);
}

/* Replaces the session and its generator by others that use the scales of today. */
static ggl_status renew(llm_context *c, ggl_error *err) {
    llm_session *session = NULL;
    llm_generator *generator = NULL;
    ggl_status st =
        llm_placement_session(c->placement, &session, c->model, &c->session_params, err);
    if (st == GGL_OK)
        st = llm_session_alloc(session, err);
    if (st == GGL_OK)
        st = llm_context_make_generator(&generator, c, session, err);
    if (st != GGL_OK) {
        llm_session_free(session);
        return st;
    }
    llm_generator_free(c->generator);
    llm_session_free(c->session);
    c->generator = generator;
    c->session = session;
    return GGL_OK;
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
