/* Opens models by path, by the name of a built-in one, or from the Hugging Face Hub. */
#include <stdlib.h>
#include <string.h>

#include "builtin/builtin.h"
#include "context.h"
#include "ggl/internal/backends.h"
#include "hub/hub.h"

/* --- from the hub ----------------------------------------------------------------------------- */

typedef struct fetching {
    const llm_open_params *p;
    size_t done, size; /* of the last call of progress */
    bool stopped;
} fetching;

static bool ask(fetching *f) {
    if (f->p->progress && !f->stopped)
        f->stopped = !f->p->progress(f->p->user, f->done, f->size);
    return f->stopped;
}

static void on_event(void *user, const hub_event *e) {
    fetching *f = user;
    const bool says = e->kind == HUB_SAYS || e->kind == HUB_NOTES || e->kind == HUB_WARNS;
    if (says && f->p->note)
        f->p->note(f->p->user, e->text);
    if (says)
        return;
    f->done = (size_t)e->done;
    f->size = (size_t)e->size;
    (void)ask(f);
}

/* Nothing may come for a while: the program is asked all the same. */
static bool on_stop(void *user) {
    return ask(user);
}

/* Gets the model of a repository, USER/REPO or USER/REPO:QUANT, and opens it. */
static ggl_status open_repo(llm_model **out, const char *repo, const llm_model_params *mp,
                            const llm_open_params *p, ggl_error *err) {
    fetching f = {.p = p};
    const hub_wanted wanted = {.repo = repo,
                               .token = p->hub_token,
                               .arch = mp->arch_path,
                               .offline = p->offline,
                               .watch = {on_event, on_stop, &f}};
    char *path;
    *out = NULL;
    ggl_status st = llm_hub_get(&path, &wanted, err);
    if (st == GGL_OK)
        st = llm_model_open(out, path, mp, err);
    free(path);
    return st;
}

/* --- all models ------------------------------------------------------------------------------- */

ggl_status llm_context_load(llm_model **out, const char *path, const char *arch,
                            const llm_open_params *p, ggl_error *err) {
    const llm_load_params load = {.size = sizeof load,
                                  .open_backend = ggl_backend_open,
                                  .close_backend = ggl_backend_close,
                                  .n_threads = p->n_threads > 0 ? p->n_threads
                                                                : ggl_backend_default_threads(),
                                  .progress = p->progress,
                                  .ctx = p->user};
    const llm_model_params mp = {.size = sizeof mp, .arch_path = arch, .load = &load};
    llm_builtin built_in;
    if (!path)
        return ggl_fail(err, GGL_USAGE, "llm_open needs the path of a model");
    if (strncmp(path, "hf:", 3) == 0)
        return open_repo(out, path + 3, &mp, p, err);
    if (!llm_builtin_find(path, &built_in))
        return llm_model_open(out, path, &mp, err);
    if (!built_in.name)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s: the built-in models are builtin:stories and builtin:chat", path);
    return llm_model_open_memory(out, built_in.data, built_in.size, built_in.name, &mp, err);
}
