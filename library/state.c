/* Saves and restores the sequence of a context in files. */
#include "cache_settings.h"
#include "context.h"
#include "llm/internal/prompt_cache.h"

static ggl_status open_cache(const llm_context *c, llm_prompt_cache **out,
                             char text[LLM_CACHE_SETTINGS], ggl_error *err) {
    const llm_prompt_cache_params p = {
        .size = sizeof p, .model = c->model, .session = c->session, .also = text};
    *out = NULL;
    return llm_cache_settings(text, c->adapter, c->n_adapters, c->placement)
               ? llm_prompt_cache_new(out, &p, err)
               : ggl_fail(err, GGL_LIMIT, "the names of adapters and devices are too long");
}

/* Runs tokens that were drawn and have not run: the last one of a generation, and more of a model that cannot take back guesses. Those
 * that exceed the context stay as they are. */
static ggl_status run_drawn(llm_context *c, ggl_error *err) {
    const size_t n = c->ids.n, n_ctx = (size_t)llm_session_n_ctx(c->session),
                 n_run = n < n_ctx ? n : n_ctx;
    if (n_run <= (size_t)llm_session_n_past(c->session, 0))
        return GGL_OK;
    c->ids.n = n_run;
    const ggl_status st = llm_context_run(c, 1, err);
    c->ids.n = n;
    if (st != GGL_OK)
        llm_context_recover(c);
    return st;
}

ggl_status llm_save(llm_context *c, const char *path, ggl_error *err) {
    llm_prompt_cache *cache = NULL;
    char text[LLM_CACHE_SETTINGS];
    if (!path)
        return ggl_fail(err, GGL_USAGE, "llm_save needs a path");
    atomic_store(&c->cancelled, false);
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK && c->ids.n == 0)
        st = ggl_fail(err, GGL_USAGE, "the sequence is empty, so there is nothing to save");
    if (st == GGL_OK)
        st = run_drawn(c, err);
    if (st == GGL_OK)
        st = open_cache(c, &cache, text, err);
    if (st == GGL_OK)
        st = llm_prompt_cache_save_all(cache, path, c->ids.id,
                                       (size_t)llm_session_n_past(c->session, 0), c->ids.n, err);
    llm_prompt_cache_free(cache);
    return st;
}

ggl_status llm_restore(llm_context *c, const char *path, ggl_error *err) {
    llm_prompt_cache *cache = NULL;
    char text[LLM_CACHE_SETTINGS];
    int32_t *id = NULL;
    size_t n = 0, n_all = 0;
    if (!path)
        return ggl_fail(err, GGL_USAGE, "llm_restore needs a path");
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = open_cache(c, &cache, text, err);
    if (st == GGL_OK)
        st = llm_prompt_cache_restore(cache, path, &id, &n, &n_all, err);
    if (st == GGL_OK)
        st = llm_context_set(c, id, n_all, err);
    else if (cache && llm_session_n_past(c->session, 0) == 0)
        (void)llm_context_clear(c, NULL);
    llm_prompt_cache_free(cache);
    ggl_free(id);
    return st;
}
