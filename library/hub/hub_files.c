/* Downloads files of a repository that belong together: the parts of a split model, or those of a Hugging Face folder.
 *
 * While they are downloaded, an empty file FIRST.unfinished lies beside the first of them. Without a network, it tells that the
 * files in the cache may be of two versions, or that some are missing. Each process that downloads them holds a shared lock on it, and
 * the last one to end removes it if all went well. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "fetch.h"
#include "ggl/internal/os_fs.h"
#include "hub_impl.h"
#include "common/user_path.h"
#include "web.h"

/* --- the mark --------------------------------------------------------------------------------- */

/* Returns the path of the mark, which the caller frees; NULL: out of memory. */
static char *mark_path(const hub *h, const char *first) {
    char name[HUB_MOST_PATH + 16];
    snprintf(name, sizeof name, "%s.unfinished", first);
    return llm_hub_join(h->cache, h->folder, name);
}

bool llm_hub_is_unfinished(const hub *h, const char *first) {
    char *path = mark_path(h, first);
    const bool is = path && ggl_os_exists(path);
    free(path);
    return is;
}

/* Opens the mark, and locks it as one of several processes. Returns -1 and sets errno after an error. */
static int open_mark(const hub *h, const char *path, int flags) {
    for (;;) {
        const int fd = ggl_os_open(path, flags | OS_NO_LINK | OS_NO_WAIT);
        if (fd < 0)
            return -1;
        while (!ggl_os_lock(fd, false, true) && errno == EINTR && !hub_stopped(h)) {
        }
        if (hub_stopped(h) || ggl_os_is_at(fd, path)) /* also on a file system without locks */
            return fd;
        ggl_os_close(fd);
    }
}

ggl_status llm_hub_set_unfinished(hub *h, const char *first, ggl_error *err) {
    if (h->mark >= 0)
        return GGL_OK;
    char *path = mark_path(h, first);
    if (!path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_os_make_parents(path, true);
    h->mark = open_mark(h, path, OS_WRITE | OS_CREATE);
    const ggl_status st =
        h->mark >= 0 ? GGL_OK : ggl_fail(err, GGL_IO, "%s: %s", path, strerror(errno));
    free(path);
    return st;
}

/* True if the cache has safetensors now: h->cached is older. */
static bool has_weights(const hub *h) {
    hub_list now = {0};
    ggl_error ignored;
    char *folder = llm_hub_join(h->cache, h->folder, NULL);
    const bool known = folder && llm_hub_list_add_folder(&now, folder, &ignored) == GGL_OK;
    const bool has = !known || llm_hub_list_has_weights(&now);
    llm_hub_list_fini(&now);
    free(folder);
    return has;
}

void llm_hub_set_finished(hub *h, const char *first, bool weights) {
    char *path = mark_path(h, first);
    if (path && h->mark < 0)
        h->mark = open_mark(h, path, OS_WRITE); /* one of an interrupted download, or none */
    /* The last of several processes gets the lock for itself: asking for it gives up the shared one. */
    const bool alone = h->mark >= 0 && (ggl_os_lock(h->mark, true, false) ||
                                        (errno != EWOULDBLOCK && errno != EINTR));
    if (alone && ggl_os_is_at(h->mark, path) && (weights || !has_weights(h)))
        (void)ggl_os_remove(path);
    if (h->mark >= 0)
        ggl_os_close(h->mark);
    h->mark = -1;
    free(path);
}

/* --- the files -------------------------------------------------------------------------------- */

/* Appends a path to a URL, with %XX for what has a meaning in URLs. */
static void put_path(char *url, size_t size, const char *path) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/";
    size_t n = strlen(url);
    for (; *path && n + 4 < size; path++)
        n += (size_t)snprintf(url + n, size - n, strchr(plain, *path) ? "%c" : "%%%02X",
                              (unsigned char)*path);
}

/* Sets *to to what llm_fetch() takes. Its url and path are to be freed, also after an error. */
static ggl_status describe(const hub *h, const hub_file *f, fetch_file *to, ggl_error *err) {
    char *url = malloc(WEB_MOST_URL);
    *to = (fetch_file){.url = url,
                       .path = llm_hub_join(h->cache, h->folder, f->path),
                       .name = llm_hub_is_within(f) ? f->path : NULL,
                       .token = h->token,
                       .size = f->size,
                       .version = f->version,
                       .digest = *f->version ? f->version : NULL,
                       .is_whole = !*f->version};
    if (!url || !to->path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    snprintf(url, WEB_MOST_URL, "%s/%s/resolve/main/", h->endpoint, h->name);
    put_path(url, WEB_MOST_URL, f->path);
    return GGL_OK;
}

static void free_files(fetch_file *f, size_t n) {
    for (size_t k = 0; f && k < n; k++) {
        free((void *)f[k].path);
        free((void *)f[k].url);
    }
    ggl_free(f);
}

/* Writes those files that are not current to f[0], .., and their number to *n_missing. */
static ggl_status find_missing(const hub *h, const hub_file *const *file, size_t n, fetch_file *f,
                               size_t *n_missing, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t k = 0; k < n && st == GGL_OK && !hub_stopped(h); k++) {
        fetch_file *to = &f[*n_missing];
        st = describe(h, file[k], to, err);
        if (st == GGL_OK && llm_fetch_is_current(&h->w->watch, to)) {
            free((void *)to->path);
            free((void *)to->url);
            *to = (fetch_file){0};
        } else {
            ++*n_missing;
        }
    }
    return st;
}

ggl_status llm_hub_too_many(const hub *h, size_t n, ggl_error *err) {
    return ggl_fail(err, GGL_LIMIT, "%s: the model has %zu parts; at most %d are supported",
                    h->name, n, HUB_MOST_PARTS);
}

/* Says how much will be downloaded, if that is more than one file, which says it itself. */
static void say_total(const hub *h, const fetch_file *f, size_t n) {
    char text[AMOUNT_TEXT];
    uint64_t size = 0;
    for (size_t k = 0; k < n; k++)
        size = size > UINT64_MAX - f[k].size ? UINT64_MAX : size + f[k].size;
    if (n > 1)
        llm_watch_say(&h->w->watch, HUB_SAYS, "downloading %zu files of %s, %s", n, h->name,
                      llm_amount_bytes(text, size));
}

/* Downloads n files. */
static ggl_status fetch_all(hub *h, const fetch_file *f, size_t n, const char *first,
                            ggl_error *err) {
    ggl_status st = llm_fetch_check_space(f, n, err);
    if (st == GGL_OK && n > 0 && first)
        st = llm_hub_set_unfinished(h, first, err);
    if (st == GGL_OK)
        say_total(h, f, n);
    for (size_t k = 0; k < n && st == GGL_OK; k++)
        st = llm_fetch(&h->w->watch, &f[k], err);
    return st;
}

ggl_status llm_hub_fetch(hub *h, const hub_file *const *file, size_t n, const char *first,
                         ggl_error *err) {
    size_t n_missing = 0;
    fetch_file *f = ggl_calloc(n + 1, sizeof *f);
    ggl_status st = f ? find_missing(h, file, n, f, &n_missing, err)
                      : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK && hub_stopped(h))
        st = ggl_fail(err, GGL_CANCELLED, "stopped");
    if (st == GGL_OK)
        st = fetch_all(h, f, n_missing, first, err);
    free_files(f, n_missing);
    return st;
}
