/* Lists what is in the cache: the repositories at hub/USER/REPO, and files from URLs at url/DIGEST. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "hub_impl.h"

typedef struct walk {
    hub *h;
    const char *repo; /* the repository that is listed; NULL: a URL's */
    void (*each)(void *user, const hub_cached *c);
    void *user;
    size_t n; /* models of the folder */
    bool no_memory;
} walk;

static void say_problem(walk *w, const char *path, const char *problem) {
    const hub_cached c = {.path = path, .problem = problem};
    w->each(w->user, &c);
}

static void on_model(void *user, const hub_model *m) {
    walk *w = user;
    char *path = llm_hub_join(w->h->cache, w->h->folder, m->folder ? NULL : m->path);
    const hub_cached c = {.repo = w->repo,
                          .path = path,
                          .file = m->folder ? "" : m->path,
                          .size = m->size,
                          .n_files = m->n_files,
                          .is_whole = m->cached};
    w->n++;
    w->no_memory = w->no_memory || !path;
    if (path)
        w->each(w->user, &c);
    free(path);
}

static bool is_shown(const char *name) {
    return name[0] != '.';
}

/* Lists the models of h->folder. */
static void list_folder(walk *w, const char *path) {
    hub *h = w->h;
    ggl_error err = {0};
    hub_list found = {0};
    w->n = 0;
    const ggl_status st = llm_hub_list_add_folder(&found, path, &err);
    llm_hub_list_sort(&found);
    if (st == GGL_OK)
        llm_hub_each_model(h, &found, &found, on_model, w);
    w->no_memory = w->no_memory || st == GGL_NOMEM;
    if (st != GGL_OK)
        say_problem(w, path, err.msg);
    else if (w->n == 0)
        say_problem(w, path, "no model in it is complete");
    llm_hub_list_fini(&found);
}

/* Calls `visit` for each entry of a folder of the cache, with its path below the cache and in whole. No such folder: for none. */
static void each_entry(walk *w, const char *below,
                       void (*visit)(walk *w, const char *below, const char *path)) {
    char **entry = NULL;
    char *folder = llm_hub_join(w->h->cache, below, NULL);
    const int64_t n = folder ? ggl_os_folder_list(folder, is_shown, &entry) : 0;
    w->no_memory = w->no_memory || !folder || (n < 0 && errno == ENOMEM);
    if (n < 0 && errno != ENOENT)
        say_problem(w, folder, strerror(errno));
    for (int64_t i = 0; i < n; i++) {
        char *name = llm_hub_join(below, entry[i], NULL);
        char *path = name ? llm_hub_join(w->h->cache, name, NULL) : NULL;
        os_stat info;
        w->no_memory = w->no_memory || !path;
        if (path && !ggl_os_stat(path, &info))
            say_problem(w, path, strerror(errno));
        else if (path && info.kind == OS_FOLDER)
            visit(w, name, path);
        free(path);
        free(name);
        free(entry[i]);
    }
    free(entry);
    free(folder);
}

static void visit_place(walk *w, const char *below, const char *path) {
    os_folder *d = ggl_os_folder_open(path);
    const char *repo = strncmp(below, "hub/", 4) == 0 ? below + 4 : NULL;
    if (!d) {
        say_problem(w, path, strerror(errno));
        return;
    }
    ggl_os_folder_close(d);
    if (repo && !llm_hub_is_repo(repo)) {
        say_problem(w, path, "this is not the name of a repository");
        return;
    }
    free(w->h->folder);
    w->h->folder = ggl_copy_text(below);
    w->repo = repo;
    w->no_memory = w->no_memory || !w->h->folder;
    if (w->h->folder)
        list_folder(w, path);
}

static void visit_user(walk *w, const char *below, const char *path) {
    (void)path;
    each_entry(w, below, visit_place);
}

ggl_status llm_hub_each_cached(hub *h, void (*each)(void *user, const hub_cached *c), void *user,
                               ggl_error *err) {
    walk w = {.h = h, .each = each, .user = user};
    each_entry(&w, "hub", visit_user);
    each_entry(&w, "url", visit_place);
    return w.no_memory ? ggl_fail(err, GGL_NOMEM, "out of memory") : GGL_OK;
}
