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

ggl_status llm_prompt_file_load(llm_prompt_file *f, const int32_t *id, size_t n, int64_t *n_held,
                                ggl_error *why, ggl_error *err) {
    why->status = llm_prompt_cache_load(f->cache, f->path, id, n, n_held, why);
    return llm_generator_adopt(f->c->generator, id, (size_t)*n_held, err);
}

ggl_status llm_prompt_file_save(llm_prompt_file *f, const int32_t *id, size_t n, bool all,
                                ggl_error *err) {
    size_t n_all, n_held;
    ggl_status st = llm_generator_settle(f->c->generator, &n_held, err);
    const int32_t *held = llm_generator_tokens(f->c->generator, &n_all);
    if (!all)
        n_held = llm_common_beginning(held, n_held, id, n);
    const bool shifted = !all && n_held < n;
    if (st == GGL_OK && shifted)
        st = llm_prompt_cache_save_copy(f->cache, f->path, id, n, err);
    if ((st == GGL_NOT_FOUND || (st == GGL_OK && !shifted)) && n_held > 0)
        st = llm_prompt_cache_save(f->cache, f->path, held, n_held, err);
    return st;
}
