#include "new_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"
#include "ggl/internal/text.h"

enum { MOST_TRIES = 100 };

static void drop(llm_new_folder *f) {
    free(f->path);
    free(f->out);
    *f = (llm_new_folder){0};
}

static void free_names(char **name, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        free(name[i]);
    free(name);
}

/* Refuses a folder that has files. */
static ggl_status check_empty(const char *path, ggl_error *err) {
    char **name = NULL;
    const int64_t n = ggl_os_folder_list(path, NULL, &name);
    const ggl_status s =
        n < 0 ? ggl_fail(err, GGL_IO, "%s: %s", path, strerror(errno))
        : n > 0
            ? ggl_fail(err, GGL_USAGE, "%s is not empty: it has %s; give a new folder, or empty it",
                       path, name[0])
            : GGL_OK;
    free_names(name, n);
    return s;
}

/* Makes a folder beside f->out: f->path. */
static ggl_status make_beside(llm_new_folder *f, ggl_error *err) {
    const size_t size = strlen(f->out) + 64;
    if (!(f->path = malloc(size)))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_os_make_parents(f->out, false);
    for (int k = 0; k < MOST_TRIES; k++) {
        snprintf(f->path, size, "%s.tmp-%ld-%d", f->out, ggl_os_pid(), k);
        if (ggl_os_make_folder(f->path, false))
            return GGL_OK;
        if (errno != EEXIST)
            break;
    }
    return ggl_fail(err, GGL_IO, "%s: cannot make this folder: %s", f->out, strerror(errno));
}

ggl_status llm_new_folder_open(llm_new_folder *f, const char *out, ggl_error *err) {
    os_stat is;
    *f = (llm_new_folder){.out = ggl_copy_text(out)};
    if (!f->out)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t n = strlen(f->out); n > 1 && ggl_os_separates(f->out[n - 1]); n--)
        f->out[n - 1] = '\0';
    ggl_status s;
    if (ggl_os_is_folder(f->out)) {
        s = check_empty(f->out, err);
        if (s == GGL_OK && !(f->path = ggl_copy_text(f->out)))
            s = ggl_fail(err, GGL_NOMEM, "out of memory");
    } else if (!*f->out || ggl_os_stat_link(f->out, &is)) {
        s = ggl_fail(err, GGL_IO, "%s: cannot make this folder: %s", f->out,
                     *f->out ? strerror(EEXIST) : strerror(ENOENT));
    } else {
        s = make_beside(f, err);
    }
    if (s != GGL_OK)
        drop(f);
    return s;
}

/* Removes what is in the folder, which this process has written. */
static void empty(const char *folder) {
    char path[OS_MOST_PATH];
    os_stat is;
    char **name = NULL;
    const int64_t n = ggl_os_folder_list(folder, NULL, &name);
    for (int64_t i = 0; i < n; i++) {
        const int size = snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        if (size < 0 || (size_t)size >= sizeof path || !ggl_os_stat_link(path, &is))
            continue;
        if (is.kind == OS_FOLDER) {
            empty(path);
            (void)ggl_os_remove_folder(path);
        } else {
            (void)ggl_os_remove(path);
        }
    }
    free_names(name, n);
}

void llm_new_folder_discard(llm_new_folder *f) {
    if (!f->path)
        return;
    empty(f->path);
    if (strcmp(f->path, f->out) != 0)
        (void)ggl_os_remove_folder(f->path);
    drop(f);
}

ggl_status llm_new_folder_commit(llm_new_folder *f, ggl_error *err) {
    if (strcmp(f->path, f->out) != 0 && !ggl_os_rename(f->path, f->out)) {
        const ggl_status s =
            ggl_fail(err, GGL_IO, "%s: cannot make this folder: %s", f->out, strerror(errno));
        llm_new_folder_discard(f);
        return s;
    }
    drop(f);
    return GGL_OK;
}
