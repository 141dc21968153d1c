/* Opens models by path, by the name of a built-in one, or from the Hugging Face Hub. */
#include "loading.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtin/builtin.h"
#include "compile/key_ranges.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/os_fs.h"
#include "hub/hub.h"
#include "llm/internal/load.h"

/* --- from the hub ----------------------------------------------------------------------------- */

typedef struct fetching {
    const llm_loading *l;
    size_t done, size; /* of the last call of progress */
    bool stopped;
} fetching;

static bool ask(fetching *f) {
    if (f->l->progress && !f->stopped)
        f->stopped = !f->l->progress(f->l->ctx, f->done, f->size);
    return f->stopped;
}

static void on_event(void *user, const hub_event *e) {
    fetching *f = user;
    const bool says = e->kind == HUB_SAYS || e->kind == HUB_NOTES || e->kind == HUB_WARNS;
    if (says && f->l->note)
        f->l->note(f->l->ctx, e->text);
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
                            const llm_loading *l, ggl_error *err) {
    fetching f = {.l = l};
    const hub_wanted wanted = {.repo = repo,
                               .token = l->hub_token,
                               .arch = mp->arch_path,
                               .offline = l->offline,
                               .watch = {on_event, on_stop, &f}};
    char *path;
    ggl_status st = llm_hub_get(&path, &wanted, err);
    if (st == GGL_OK)
        st = llm_model_open(out, path, mp, err);
    free(path);
    return st;
}

/* --- all models ------------------------------------------------------------------------------- */

/* The type of a built-in model cannot be changed; a name that is no type is refused as such. */
static ggl_status refuse_type(const llm_loading *l, ggl_error *err) {
    const ggl_status st = llm_load_check_type(l->type, err);
    return st != GGL_OK ? st
                        : ggl_fail(err, GGL_USAGE, "%s: the built-in models are quantized already",
                                   l->type_name);
}

static ggl_status load(llm_model **out, const llm_loading *l, ggl_error *err) {
    const llm_load_params load = {
        .size = sizeof load,
        .arch_path = l->model.arch_path,
        .type = l->type,
        .eye = l->eye,
        .target = l->target,
        .ear = l->model.ear,
        .open_backend = ggl_backend_open,
        .close_backend = ggl_backend_close,
        .n_threads = l->n_threads > 0 ? l->n_threads : ggl_backend_default_threads_batch(),
        .progress = l->progress,
        .note = l->note,
        .ctx = l->ctx};
    llm_model_params mp = l->model;
    llm_builtin built_in;
    *out = NULL;
    mp.size = sizeof mp;
    mp.load = &load;
    if (!l->path)
        return ggl_fail(err, GGL_USAGE, "llm_open needs the path of a model");
    if (!l->path[0])
        return ggl_fail(err, GGL_USAGE, "the path of the model is empty");
    if (strncmp(l->path, "hf:", 3) == 0)
        return open_repo(out, l->path + 3, &mp, l, err);
    if (!llm_builtin_find(l->path, &built_in))
        return llm_model_open(out, l->path, &mp, err);
    if (!built_in.name)
        return llm_builtin_refuse(l->path, GGL_NOT_FOUND, err);
    if (l->type)
        return refuse_type(l, err);
    return llm_model_open_memory(out, built_in.data, built_in.size, built_in.name, &mp, err);
}

/* Notes numbers that no model has: the model may run with them, but what it writes may make no sense. */
static void note_doubts(const llm_loading *l, const ggl_gguf *f) {
    char doubt[512], text[1024];
    for (size_t i = 0; l->note && i < ggl_gguf_n_values(f); i++)
        if (llm_arch_doubts_key(ggl_gguf_value_at(f, i), false, doubt, sizeof doubt)) {
            snprintf(text, sizeof text, "%s: %s", l->path, doubt);
            l->note(l->ctx, text);
        }
}

static bool is_same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool llm_is_same_path(const char *a, const char *b) {
    os_stat x, y;
    return is_same_text(a, b) ||
           (a && b && ggl_os_stat(a, &x) && ggl_os_stat(b, &y) && ggl_os_is_same(&x, &y));
}

static bool is_same_list(const char *const *a, size_t n_a, const char *const *b, size_t n_b) {
    bool same = n_a == n_b;
    for (size_t i = 0; i < n_a && same; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

bool llm_loading_is_same(const llm_loading *a, const llm_loading *b) {
    const ggl_gguf_params none = {0};
    const llm_model_params *m = &a->model, *n = &b->model;
    const ggl_gguf_params *f = m->gguf ? m->gguf : &none, *g = n->gguf ? n->gguf : &none;
    return llm_is_same_path(a->path, b->path) && is_same_text(a->type, b->type) &&
           a->eye == b->eye && m->ear == n->ear && llm_is_same_path(m->mtp, n->mtp) &&
           is_same_text(m->arch_path, n->arch_path) && is_same_text(m->arch_dirs, n->arch_dirs) &&
           f->no_mmap == g->no_mmap && f->lock == g->lock &&
           is_same_list(m->override, m->n_override, n->override, n->n_override) &&
           m->ignore.is_fixed == n->ignore.is_fixed &&
           m->ignore.are_members == n->ignore.are_members &&
           is_same_list(m->ignore.key, m->ignore.n_key, n->ignore.key, n->ignore.n_key) &&
           is_same_list(m->ignore.tensor, m->ignore.n_tensor, n->ignore.tensor, n->ignore.n_tensor);
}

ggl_status llm_load_named(llm_model **out, const llm_loading *l, ggl_error *err) {
    const ggl_status st = load(out, l, err);
    if (st == GGL_OK)
        note_doubts(l, llm_model_file(*out));
    return st;
}

void llm_note_context(const llm_model *m, int64_t n_ctx, void (*note)(void *ctx, const char *text),
                      void *ctx) {
    const int64_t own = llm_model_n_ctx(m);
    char text[160];
    if (!note || own <= 0 || n_ctx <= own)
        return;
    snprintf(text, sizeof text,
             "the model was trained on %" PRId64
             " tokens at once; text beyond them may make no sense",
             own);
    note(ctx, text);
}
