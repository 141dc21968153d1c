#include "saved_prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_settings.h"
#include "common/progress.h"

struct saved_prompt {
    const char *tool;
    const saved_prompt_options *o;
    llm_context *ctx;
    llm_prompt_cache *cache;
    int64_t n_held; /* tokens that came from the file */
    char also[LLM_CACHE_SETTINGS];
};

int saved_prompt_check(const char *tool, const saved_prompt_options *o) {
    if (!o->path && (o->all || o->read_only))
        return tool_error(tool, 2,
                          "--prompt-cache-all and --prompt-cache-ro need --prompt-cache FILE");
    if (o->all && o->read_only)
        return tool_error(tool, 2,
                          "--prompt-cache-all and --prompt-cache-ro cannot be used together");
    return -1;
}

int saved_prompt_open(saved_prompt **out, const char *tool, const saved_prompt_options *o,
                      llm_context *c) {
    ggl_error err = {0};
    *out = NULL;
    if (!o->path)
        return -1;
    saved_prompt *s = *out = calloc(1, sizeof *s);
    if (!s)
        return tool_error(tool, 1, "out of memory");
    s->tool = tool;
    s->o = o;
    s->ctx = c;
    (void)llm_cache_settings(s->also, c->adapter, c->n_adapters, c->placement);
    const llm_prompt_cache_params p = {
        .size = sizeof p, .model = c->model, .session = c->session, .also = s->also};
    ggl_status st = llm_prompt_cache_new(&s->cache, &p, &err);
    if (st == GGL_OK && !o->read_only)
        st = llm_prompt_cache_check(s->cache, o->path, &err);
    c->cache = s->cache;
    return st == GGL_OK ? -1
                        : tool_error(tool, st == GGL_USAGE ? 2 : 1, "--prompt-cache: %s", err.msg);
}

void saved_prompt_close(saved_prompt *s) {
    if (!s)
        return;
    s->ctx->cache = NULL;
    llm_prompt_cache_free(s->cache);
    free(s);
}

ggl_status saved_prompt_load(saved_prompt *s, const llm_tokens *prompt, ggl_error *err) {
    ggl_error why = {0};
    if (!s)
        return GGL_OK;
    progress_begin(NULL, 0, "reading %s", s->o->path);
    const ggl_status st =
        llm_prompt_cache_load(s->cache, s->o->path, prompt->id, prompt->n, &s->n_held, &why);
    progress_end();
    if (st != GGL_OK && (st != GGL_NOT_FOUND || s->o->read_only))
        tool_note(s->tool, "--prompt-cache: %s; the prompt runs without it", why.msg);
    return llm_generator_adopt(s->ctx->generator, prompt->id, (size_t)s->n_held, err);
}

int64_t saved_prompt_n_held(const saved_prompt *s) {
    return s ? s->n_held : 0;
}

/* The number of tokens at the start that the sequences share. */
static size_t common_beginning(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
    size_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n])
        n++;
    return n;
}

bool saved_prompt_write(saved_prompt *s, const llm_tokens *prompt) {
    const size_t n = prompt->n;
    ggl_error err = {0};
    size_t n_all, n_held;
    if (!s || s->o->read_only || (!s->o->all && (size_t)s->n_held + 1 >= n && s->n_held > 0))
        return true;
    ggl_status st = llm_generator_settle(s->ctx->generator, &n_held, &err);
    const int32_t *id = llm_generator_tokens(s->ctx->generator, &n_all);
    if (!s->o->all)
        n_held = common_beginning(id, n_held, prompt->id, n);
    const bool shifted = !s->o->all && n_held < n;
    progress_begin(NULL, 0, "writing %s", s->o->path);
    if (st == GGL_OK && shifted)
        st = llm_prompt_cache_save_copy(s->cache, s->o->path, prompt->id, n, &err);
    if ((st == GGL_NOT_FOUND || (st == GGL_OK && !shifted)) && n_held > 0)
        st = llm_prompt_cache_save(s->cache, s->o->path, id, n_held, &err);
    progress_end();
    if (st == GGL_NOT_FOUND || st == GGL_UNSUPPORTED) { /* the text is complete without it */
        tool_note(s->tool, "the prompt is not saved: %s", err.msg);
        return true;
    }
    if (st != GGL_OK)
        (void)tool_error(s->tool, 1, "the prompt is not saved: %s", err.msg);
    return st == GGL_OK;
}
