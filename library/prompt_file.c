#include "prompt_file.h"

#include "arrays.h"
#include "cache_settings.h"
#include "context.h"

struct llm_prompt_file {
    const char *path;
    llm_context *c;
    llm_prompt_cache *cache;
    char also[LLM_CACHE_SETTINGS];
};

ggl_status llm_prompt_file_open(llm_prompt_file **out, llm_context *c, const char *path,
                                bool read_only, ggl_error *err) {
    llm_prompt_file *f = *out = ggl_calloc(1, sizeof *f);
    if (!f)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    f->path = path;
    f->c = c;
    (void)llm_cache_settings(f->also, c->adapter, c->n_adapters, c->placement);
    const llm_prompt_cache_params p = {
        .size = sizeof p, .model = c->model, .session = c->session, .also = f->also};
    const ggl_status st = llm_prompt_cache_new(&f->cache, &p, err);
    c->cache = f->cache;
    return st == GGL_OK && !read_only ? llm_prompt_cache_check(f->cache, path, err) : st;
}

void llm_prompt_file_close(llm_prompt_file *f) {
    if (!f)
        return;
    f->c->cache = NULL;
    llm_prompt_cache_free(f->cache);
    ggl_free(f);
}

/* What the model reads, and the beginning of what it writes, which may be *start. */
static llm_file_prompt split(const llm_context *c, const llm_file_prompt *p, int32_t *start) {
    if (!llm_session_reads_text(c->session) || p->read)
        return *p;
    *start = llm_session_start_token(c->session);
    return (llm_file_prompt){.id = start, .n = 1, .read = p->id, .n_read = p->n};
}

ggl_status llm_prompt_file_load(llm_prompt_file *f, const llm_file_prompt *prompt, int64_t *n_held,
                                ggl_error *why, ggl_error *err) {
    int32_t start;
    int64_t n_text;
    ggl_status st = llm_context_take(f->c, err);
    if (st != GGL_OK)
        return st;
    const llm_file_prompt p = split(f->c, prompt, &start);
    llm_prompt_cache_text(f->cache, p.read, p.n_read);
    why->status = llm_prompt_cache_load(f->cache, f->path, p.id, p.n, n_held, why);
    llm_prompt_cache_text(f->cache, NULL, 0);
    st = llm_context_set(f->c, p.id, (size_t)*n_held, err);
    (void)llm_session_text(f->c->session, 0, &n_text);
    if (p.read != prompt->read && why->status == GGL_OK && n_text > 0)
        *n_held = n_text - 1;
    return st;
}

ggl_status llm_prompt_file_save(llm_prompt_file *f, const llm_file_prompt *prompt, bool all,
                                ggl_error *err) {
    int32_t start;
    const llm_file_prompt p = split(f->c, prompt, &start);
    ggl_status st = llm_context_take(f->c, err);
    const int32_t *held = f->c->ids.id;
    size_t n_held = (size_t)llm_session_n_past(f->c->session, 0);
    if (!all)
        n_held = llm_common_beginning(held, n_held, p.id, p.n);
    const bool shifted = !all && n_held < p.n;
    if (st == GGL_OK && shifted)
        st = llm_prompt_cache_save_copy(f->cache, f->path, p.id, p.n, err);
    if ((st == GGL_NOT_FOUND || (st == GGL_OK && !shifted)) && n_held > 0)
        st = llm_prompt_cache_save(f->cache, f->path, held, n_held, err);
    return st;
}
