/* Saves and restores the sequence of a context in files. */
#include <stdio.h>

#include "context.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/prompt_cache.h"

enum { SETTINGS = 1000 }; /* bytes of a text of settings, and its NUL */

/* Writes what the numbers depend on besides the model: the adapters. */
static ggl_status describe(const llm_context *c, char text[SETTINGS], ggl_error *err) {
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < c->n_adapters && n < SETTINGS; i++)
        n += (size_t)snprintf(text + n, SETTINGS - n, "%s%s*%.17g", i > 0 ? ", " : "lora ",
                              ggl_gguf_name(llm_adapter_file(c->adapter[i].adapter)),
                              c->adapter[i].scale);
    return n < SETTINGS
               ? GGL_OK
               : ggl_fail(err, GGL_LIMIT, "the paths of the adapters have %zu bytes or more", n);
}

static ggl_status open_cache(const llm_context *c, llm_prompt_cache **out, char text[SETTINGS],
                             ggl_error *err) {
    const ggl_status st = describe(c, text, err);
    const llm_prompt_cache_params p = {
        .size = sizeof p, .model = c->model, .session = c->session, .also = text};
    *out = NULL;
    return st == GGL_OK ? llm_prompt_cache_new(out, &p, err) : st;
}

ggl_status llm_save(llm_context *c, const char *path, ggl_error *err) {
    llm_prompt_cache *cache = NULL;
    char text[SETTINGS];
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
    char text[SETTINGS];
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
