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

ggl_status llm_save(llm_context *c, const char *path, ggl_error *err) {
    llm_prompt_cache *cache = NULL;
    char text[LLM_CACHE_SETTINGS];
    if (!path)
        return ggl_fail(err, GGL_USAGE, "llm_save needs a path");
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK && c->ids.n == 0)
        st = ggl_fail(err, GGL_USAGE, "the sequence is empty, so there is nothing to save");
    /* the last token of a generation was drawn, but has not run */
    if (st == GGL_OK && c->ids.n > (size_t)llm_session_n_past(c->session, 0))
        st = llm_context_run(c, 1, err);
    if (st == GGL_OK)
        st = open_cache(c, &cache, text, err);
    if (st == GGL_OK)
        st = llm_prompt_cache_save(cache, path, c->ids.id, c->ids.n, err);
    llm_prompt_cache_free(cache);
    return st;
}

ggl_status llm_restore(llm_context *c, const char *path, ggl_error *err) {
    llm_prompt_cache *cache = NULL;
    char text[LLM_CACHE_SETTINGS];
    int32_t *id = NULL;
    size_t n = 0;
    if (!path)
        return ggl_fail(err, GGL_USAGE, "llm_restore needs a path");
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = open_cache(c, &cache, text, err);
    if (st == GGL_OK)
        st = llm_prompt_cache_restore(cache, path, &id, &n, err);
    if (st == GGL_OK)
        st = llm_context_set(c, id, n, err);
    else if (cache && llm_session_n_past(c->session, 0) == 0)
        (void)llm_context_clear(c, NULL);
    llm_prompt_cache_free(cache);
    ggl_free(id);
    return st;
}
