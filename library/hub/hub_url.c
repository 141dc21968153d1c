/* Gets models by their URL. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch.h"
#include "file_digest.h"
#include "ggl/internal/os_fs.h"
#include "hub_impl.h"
#include "common/split_name.h"
#include "web.h"

/* Finds where the file's name begins and ends in a URL. */
static size_t name_in_url(const char *url, size_t *end) {
    size_t from = *end = strcspn(url, "?#");
    while (from > 0 && url[from - 1] != '/')
        from--;
    return from;
}

/* Writes the path of a URL's file in the cache: url/DIGEST/NAME. DIGEST is computed from the rest of the URL, so the parts of a
 * split model lie in one folder. If the URL has no file name, NAME is model.gguf. */
static void path_of_url(char *path, size_t size, const char *url) {
    char hex[SHA256_HEX], name[HUB_MOST_PATH];
    size_t end;
    const size_t from = name_in_url(url, &end), n = end - from;
    sha256 s;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : 0), url + from);
    const bool named = llm_hub_kind_of(name) == HUB_GGUF && llm_hub_is_path(name);
    llm_sha256_begin(&s);
    llm_sha256_add(&s, url, named ? from : end);
    llm_sha256_add(&s, url + end, strlen(url + end));
    llm_sha256_end(&s, hex);
    snprintf(path, size, "url/%.12s/%s", hex, named ? name : "model.gguf");
}

/* The texts of a fetch_file: its version, and its ETag if that is strong. */
typedef struct url_version {
    char text[256], etag[sizeof((web_answer *)0)->etag];
} url_version;

/* Sets the size and the version of a file from the headers of its URL. The headers of a hub also give its digest. */
static ggl_status describe(fetch_file *f, url_version *v, const web_answer *a, ggl_error *err) {
    const bool stored = llm_file_digest_is_sha256(a->linked_etag);
    const int64_t n = stored && a->linked_size >= 0 ? a->linked_size : a->length;
    if (n < 0)
        return ggl_fail(
            err, GGL_FORMAT,
            "%s: the server does not report the size of the file (Content-Length), so a broken "
            "download could not be detected; download the file yourself, and pass it with -m",
            f->url);
    f->size = (uint64_t)n;
    f->version = v->text;
    if (stored) {
        snprintf(v->text, sizeof v->text, "%s", a->linked_etag);
        f->digest = v->text;
        return GGL_OK;
    }
    if (*a->etag && !a->weak && !llm_web_has_control(a->etag)) {
        snprintf(v->etag, sizeof v->etag, "%s", a->etag);
        f->etag = v->etag;
    }
    f->is_whole = !f->etag;
    snprintf(v->text, sizeof v->text, "%s %" PRId64 "%s%s", a->etag, n, *a->etag ? "" : " ",
             *a->etag ? "" : a->modified);
    for (char *c = v->text; *c; c++)
        if ((unsigned char)*c < 32)
            *c = ' ';
    return GGL_OK;
}

/* Asks for a file's size and version. */
static ggl_status ask_url(const hub *h, bool hurry, fetch_file *f, url_version *v, ggl_error *err) {
    web_answer *a = malloc(sizeof *a);
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    f->token = llm_hub_is_on_endpoint(h, f->url) ? h->token : NULL;
    const web_request q = {
        .url = f->url, .token = f->token, .head = true, .hurry = hurry, .watch = &h->w->watch};
    ggl_status st = llm_web_ask(&q, a, err);
    if (st == GGL_IO || st == GGL_FORMAT)
        st = ggl_within(err, st, "%s", f->url);
    if (st == GGL_OK)
        st = a->status == 200 ? describe(f, v, a, err)
                              : llm_web_refused(a, f->url, f->token != NULL, err);
    free(a);
    return st;
}

/* Gets one file, and sets *path, which is to be freed also after an error. */
static ggl_status get_file(const hub *h, const char *url, char **path, ggl_error *err) {
    char below[HUB_MOST_PATH + 20];
    url_version version = {0};
    os_stat info;
    path_of_url(below, sizeof below, url);
    *path = llm_hub_join(h->cache, below, NULL);
    if (!*path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const bool has_cached = ggl_os_stat(*path, &info);
    if (h->w->offline && has_cached)
        return GGL_OK;
    if (h->w->offline)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s is not in the cache (%s), and nothing is downloaded offline", url,
                        *path);
    fetch_file f = {.url = url, .path = *path};
    ggl_error of_url = {0};
    ggl_status st = ask_url(h, has_cached, &f, &version, &of_url);
    if (st != GGL_OK && st != GGL_USAGE && st != GGL_CANCELLED && has_cached) {
        llm_watch_say(&h->w->watch, HUB_NOTES, "%s. The file in the cache is used", of_url.msg);
        return GGL_OK;
    }
    if (st != GGL_OK && err)
        *err = of_url;
    if (st != GGL_OK || llm_fetch_is_current(&h->w->watch, &f))
        return st;
    st = llm_fetch_check_space(&f, 1, err);
    return st == GGL_OK ? llm_fetch(&h->w->watch, &f, err) : st;
}

/* Checks that a URL names a GGUF file, or the first part of one: `name`. */
static ggl_status check_name(const char *name, ggl_error *err) {
    const hub_kind kind = llm_hub_kind_of(name);
    const int n_parts = llm_split_n_parts(name);
    if (kind != HUB_GGUF && kind != HUB_OTHER)
        return ggl_fail(err, GGL_USAGE,
                        "%s is no GGUF file, but %s; the name of a repository, USER/REPO, gets the "
                        "folder of a model with safetensors",
                        name, kind == HUB_PICKLE ? "a pickle of PyTorch" : "part of a folder");
    if (n_parts > HUB_MOST_PARTS)
        return ggl_fail(err, GGL_LIMIT, "the model has %d parts; at most %d are supported", n_parts,
                        HUB_MOST_PARTS);
    return llm_split_is_first(name)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "%s is a later part of a split model; name the first",
                          name);
}

/* Gets the file of a URL; if it is the first part of a split model, also the other parts. */
ggl_status llm_hub_get_url(hub *h, ggl_error *err) {
    const char *url = h->w->url;
    char name[HUB_MOST_PATH], part[HUB_MOST_PATH], of_part[WEB_MOST_URL];
    size_t end;
    const size_t from = name_in_url(url, &end), n = end - from;
    if (!llm_hub_is_url(url) || strlen(url) >= WEB_MOST_URL)
        return ggl_fail(err, GGL_USAGE,
                        "'%s' is not a URL of less than %d bytes that begins with https://", url,
                        WEB_MOST_URL);
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : 0), url + from);
    ggl_status st = check_name(name, err);
    if (st == GGL_OK)
        st = get_file(h, url, &h->path, err);
    for (int k = 2; k <= llm_split_n_parts(name) && st == GGL_OK; k++) {
        char *path = NULL;
        llm_split_part_path(part, sizeof part, name, k);
        snprintf(of_part, sizeof of_part, "%.*s%s%s", (int)from, url, part, url + end);
        st = get_file(h, of_part, &path, err);
        free(path);
    }
    return st;
}
