#include "fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "file_digest.h"
#include "ggl/internal/disk_left.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/show.h"
#include "common/user_path.h"
#include "ggl/internal/os_fs.h"
#include "web.h"

enum { MOST_FAILURES = 4, PIECE = 1 << 16, MOST_VERSION = 256 };

typedef struct download {
    const hub_watch *w;
    const fetch_file *f;
    watch_work work;
    char *part; /* the path of the unfinished file */
    int fd;     /* of it, locked */
    file_digest digest;
    uint64_t n; /* bytes in it */
    int error;  /* errno of a failed write */
    bool moved; /* this request has received bytes */
    bool too_long;
    bool changed; /* the server has another version now */
} download;

/* --- versions --------------------------------------------------------------------------------- */

static char *with_suffix(const char *path, const char *middle, const char *suffix) {
    const size_t size = strlen(path) + strlen(middle) + strlen(suffix) + 1;
    char *s = malloc(size);
    if (s)
        snprintf(s, size, "%s%s%s", path, middle, suffix);
    return s;
}

/* Reads the line of PATH.version. False if none. */
static bool read_version(const char *path, char *version, size_t size) {
    char *name = with_suffix(path, ".version", "");
    FILE *f = name ? ggl_os_fopen_plain(name) : NULL;
    const bool has = f && fgets(version, (int)size, f) != NULL;
    if (f)
        fclose(f);
    free(name);
    if (has)
        version[strcspn(version, "\n")] = '\0';
    return has;
}

static void write_version(const char *path, const char *version) {
    char *name = with_suffix(path, ".version", "");
    ggl_new_file *out = NULL;
    os_stat st;
    if (name && ggl_os_stat_link(name, &st) && st.kind != OS_FILE)
        (void)ggl_os_remove(name); /* such as a named pipe, which would be written to, and wait */
    ggl_error ignored;             /* without the file, the next run computes the digest again */
    if (name && ggl_new_file_open(&out, name, &ignored) == GGL_OK) {
        fprintf(ggl_new_file_stream(out), "%s\n", version);
        (void)!ggl_new_file_commit(out, &ignored);
    }
    free(name);
}

static void remove_version(const char *path) {
    char *name = with_suffix(path, ".version", "");
    if (name)
        (void)ggl_os_remove(name);
    free(name);
}

/* Adds the contents of a file to a digest. Returns false if the file cannot be read, or after a signal. */
static bool add_file(file_digest *s, int fd, uint64_t size, watch_work *p) {
    char *data = malloc(PIECE);
    uint64_t done = 0;
    while (data && done < size && !llm_watch_stopped(p->w)) {
        const int64_t n = ggl_os_read_at(fd, data, PIECE, (int64_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        llm_file_digest_add(s, data, (size_t)n);
        done += (uint64_t)n;
        llm_watch_go_on(p, done);
    }
    free(data);
    return done == size;
}

/* Computes the digest of a cached file without PATH.version, such as one that was put there by hand. */
static bool has_digest(const hub_watch *w, const fetch_file *f) {
    char hex[FILE_DIGEST];
    file_digest s;
    watch_work p;
    const int fd = ggl_os_open(f->path, OS_READ);
    llm_file_digest_begin(&s, f->digest, f->size);
    llm_watch_begin(&p, w, "checking", f->path, 0, f->size);
    const bool read = fd >= 0 && add_file(&s, fd, f->size, &p);
    llm_watch_end(&p);
    if (fd >= 0)
        ggl_os_close(fd);
    llm_file_digest_end(&s, hex);
    return read && strcmp(hex, f->digest) == 0;
}

bool llm_fetch_is_current(const hub_watch *w, const fetch_file *f) {
    char version[MOST_VERSION];
    os_stat st;
    if (!ggl_os_stat(f->path, &st) || (uint64_t)st.size != f->size)
        return false;
    if (read_version(f->path, version, sizeof version))
        return strcmp(version, f->version) == 0;
    if (!f->digest || !has_digest(w, f))
        return false;
    write_version(f->path, f->version);
    return true;
}

/* --- the unfinished file ---------------------------------------------------------------------- */

/* The name depends on the version, so that parts of two versions are never put together. */
static char *part_path(const fetch_file *f) {
    char hex[SHA256_HEX], middle[16];
    sha256 s;
    llm_sha256_begin(&s);
    llm_sha256_add(&s, f->version, strlen(f->version));
    llm_sha256_end(&s, hex);
    const bool is_sha256 = f->digest && llm_file_digest_is_sha256(f->digest);
    snprintf(middle, sizeof middle, ".%.8s", is_sha256 ? f->digest : hex);
    return with_suffix(f->path, middle, ".part");
}

/* Locks a file; waits while another process has the lock. */
static ggl_status lock(const download *d, ggl_error *err) {
    bool noted = false;
    while (!ggl_os_lock(d->fd, true, false)) {
        if (llm_watch_stopped(d->w))
            return ggl_fail(err, GGL_CANCELLED, "stopped");
        if (errno != EWOULDBLOCK && errno != EINTR)
            return GGL_OK; /* a file system without locks */
        if (!noted)
            llm_watch_say(d->w, HUB_SAYS,
                          "another process is downloading this file; waiting for it");
        noted = true;
        ggl_os_sleep(200000000);
    }
    return GGL_OK;
}

/* Opens and locks the partial download. Sets *done if another process has finished it meanwhile. */
static ggl_status open_part(download *d, bool *done, ggl_error *err) {
    *done = false;
    for (;;) {
        d->fd = ggl_os_open(d->part, OS_READ | OS_WRITE | OS_CREATE | OS_NO_LINK);
        if (d->fd < 0)
            return ggl_fail(err, GGL_IO, "%s: %s", d->part, strerror(errno));
        const ggl_status st = lock(d, err);
        if (st != GGL_OK)
            return st;
        const bool there = ggl_os_is_at(d->fd, d->part);
        *done = llm_fetch_is_current(d->w, d->f);
        if (*done && there)
            (void)ggl_os_remove(d->part); /* an empty one, which open() has made */
        if (*done || there)
            return GGL_OK;
        ggl_os_close(d->fd);
        d->fd = -1;
    }
}

static ggl_status start_over(download *d, ggl_error *err) {
    d->n = 0;
    llm_file_digest_begin(&d->digest, d->f->digest, d->f->size);
    if (!ggl_os_truncate(d->fd, 0) || ggl_os_seek(d->fd, 0, SEEK_SET) != 0)
        return ggl_fail(err, GGL_IO, "%s: %s", d->part, strerror(errno));
    return GGL_OK;
}

/* Reads the partial download of an earlier run, to continue its digest. */
static ggl_status read_part(download *d, ggl_error *err) {
    const int64_t size = ggl_os_seek(d->fd, 0, SEEK_END);
    ggl_status st = GGL_OK;
    if (size <= 0 || d->f->is_whole)
        return start_over(d, err);
    llm_file_digest_begin(&d->digest, d->f->digest, d->f->size);
    watch_work p;
    llm_watch_begin(&p, d->w, "checking", d->part, 0, (uint64_t)size);
    const bool fits = (uint64_t)size <= d->f->size;
    const bool read = fits && add_file(&d->digest, d->fd, (uint64_t)size, &p);
    llm_watch_end(&p);
    if (llm_watch_stopped(d->w))
        return ggl_fail(err, GGL_CANCELLED, "stopped");
    if (read) {
        d->n = (uint64_t)size;
        return GGL_OK;
    }
    llm_watch_say(d->w, HUB_SAYS, "the partial download of an earlier run %s; starting over",
                  fits ? "cannot be read" : "is longer than the file");
    st = start_over(d, err);
    return st;
}

/* --- the transfer ----------------------------------------------------------------------------- */

static bool on_body(void *ctx, const web_answer *a, const char *data, size_t n) {
    download *d = ctx;
    if (d->n > 0 && a->status != 206 && !d->moved)
        return false; /* the server sends everything from the start */
    if (d->f->etag && !d->moved && strcmp(a->etag, d->f->etag) != 0 && (d->n > 0 || *a->etag)) {
        d->changed = true;
        return false;
    }
    if (n > d->f->size - d->n) {
        d->too_long = true;
        return false;
    }
    llm_file_digest_add(&d->digest, data, n);
    while (n > 0) {
        const int64_t done = ggl_os_write(d->fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            d->error = done == 0 ? ENOSPC : errno;
            return false;
        }
        data += done;
        n -= (size_t)done;
        d->n += (uint64_t)done;
    }
    d->moved = true;
    llm_watch_go_on(&d->work, d->n);
    return true;
}

/* Requests the missing bytes once. GGL_IO: trying again may help. */
static ggl_status ask(download *d, ggl_error *err) {
    const fetch_file *f = d->f;
    web_answer a;
    const web_request q = {.url = f->url,
                           .token = f->token,
                           .offset = d->n,
                           .if_etag = f->etag,
                           .body = on_body,
                           .ctx = d,
                           .watch = d->w};
    d->moved = d->changed = false;
    const uint64_t before = d->n;
    ggl_status st = llm_web_ask(&q, &a, err);
    if (d->error)
        return ggl_fail(err, GGL_LIMIT, "%s: %s", d->part, strerror(d->error));
    if (d->too_long)
        return ggl_fail(err, GGL_FORMAT, "the server sends more than the %" PRIu64 " bytes of %s",
                        f->size, f->url);
    if (llm_watch_stopped(d->w))
        return ggl_fail(err, GGL_CANCELLED, "stopped");
    if (d->changed && before == 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s has changed on the server during the download; the same command "
                        "downloads the new version",
                        f->url);
    /* It sends everything, another part, or none. A connection that broke without a byte is not its refusal. */
    const bool refused =
        d->changed || a.status == 200 || a.status == 416 || (a.status == 206 && a.other_part);
    if (before > 0 && d->n == before && refused) {
        llm_watch_say(d->w, HUB_SAYS,
                      "the server cannot continue a download; starting over from the beginning");
        st = start_over(d, err);
        llm_watch_start_over(&d->work);
        return st == GGL_OK ? ask(d, err) : st;
    }
    if (a.status >= 300 && (st == GGL_OK || a.status >= 400))
        return llm_web_refused(&a, f->url, f->token != NULL, err);
    if (st == GGL_OK && d->n < f->size)
        st = ggl_fail(err, GGL_IO, "the connection ended early");
    return st;
}

/* Waits before another try; returns early after a signal. */
static void wait_seconds(const download *d, int seconds) {
    for (int i = 0; i < 10 * seconds && !llm_watch_stopped(d->w); i++)
        ggl_os_sleep(100000000);
}

static ggl_status transfer(download *d, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int failures = 0; d->n < d->f->size;) {
        if (d->f->is_whole && d->n > 0) {
            st = start_over(d, err);
            if (st != GGL_OK)
                return st;
            llm_watch_start_over(&d->work);
        }
        const uint64_t before = d->n;
        st = ask(d, err);
        if (st == GGL_OK || (st == GGL_IO && d->n == d->f->size))
            return GGL_OK;
        failures = d->n > before && !d->f->is_whole ? 1 : failures + 1;
        if (st != GGL_IO || failures >= MOST_FAILURES || llm_watch_stopped(d->w))
            return st;
        const int seconds = 1 << (failures - 1);
        llm_watch_say(d->w, HUB_SAYS, "%s; trying again in %d s", err->msg, seconds);
        wait_seconds(d, seconds);
        if (llm_watch_stopped(d->w))
            return ggl_fail(err, GGL_CANCELLED, "stopped");
    }
    return st;
}

/* Checks the complete file and moves it into place. */
static ggl_status finish(download *d, ggl_error *err) {
    const fetch_file *f = d->f;
    char hex[FILE_DIGEST];
    llm_file_digest_end(&d->digest, hex);
    if (f->digest && strcmp(hex, f->digest) != 0) {
        (void)ggl_os_remove(d->part);
        return ggl_fail(err, GGL_FORMAT,
                        "%s has the wrong %s: it is %s, but should be %s. The file was "
                        "damaged on the way, or is a "
                        "different one, so it was removed; the same command downloads it again",
                        f->url, llm_file_digest_is_git(f->digest) ? "SHA-1" : "SHA-256", hex,
                        f->digest);
    }
    if (!ggl_os_sync(d->fd))
        return ggl_fail(err, GGL_IO, "%s: %s", d->part, strerror(errno));
    remove_version(f->path); /* a new file with the version of the old one would be wrong */
    if (!ggl_os_rename(d->part, f->path))
        return ggl_fail(err, GGL_IO, "%s: %s", f->path, strerror(errno));
    write_version(f->path, f->version);
    return GGL_OK;
}

static ggl_status run(download *d, ggl_error *err) {
    bool done;
    char name[300];
    ggl_status st = open_part(d, &done, err);
    if (st != GGL_OK || done)
        return st;
    st = read_part(d, err);
    if (st != GGL_OK)
        return st;
    const char *slash = ggl_os_last_separator(d->f->path);
    const char *shown = d->f->name ? d->f->name : slash ? slash + 1 : d->f->path;
    snprintf(name, sizeof name, "%.*s", (int)ggl_utf8_cut(shown, strlen(shown), sizeof name - 1),
             shown);
    char here[AMOUNT_TEXT], all[AMOUNT_TEXT];
    llm_amount_bytes(all, d->f->size);
    if (d->n > 0)
        llm_watch_say(d->w, HUB_SAYS, "downloading %s, %s, of which %s are there", name, all,
                      llm_amount_bytes(here, d->n));
    else
        llm_watch_say(d->w, HUB_SAYS, "downloading %s, %s", name, all);
    llm_watch_begin(&d->work, d->w, "downloading", name, d->n, d->f->size);
    st = transfer(d, err);
    llm_watch_end(&d->work);
    if (st == GGL_OK)
        return finish(d, err);
    if (d->n > 0 && !d->f->is_whole)
        llm_watch_say(d->w, HUB_SAYS,
                      "%s of %s have come and are kept: the same command goes on from there",
                      llm_amount_bytes(here, d->n), all);
    else
        (void)ggl_os_remove(d->part);
    return st;
}

ggl_status llm_fetch(const hub_watch *w, const fetch_file *f, ggl_error *err) {
    download d = {.w = w, .f = f, .fd = -1, .part = part_path(f)};
    if (!d.part)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_os_make_parents(f->path, true);
    const ggl_status st = run(&d, err);
    if (d.fd >= 0)
        ggl_os_close(d.fd);
    free(d.part);
    return st;
}

/* --- before and after ------------------------------------------------------------------------- */

ggl_status llm_fetch_check_space(const fetch_file *f, size_t n, ggl_error *err) {
    uint64_t wanted = 0, there;
    char a[AMOUNT_TEXT], b[AMOUNT_TEXT];
    for (size_t i = 0; i < n; i++) {
        os_stat st;
        char *part = part_path(&f[i]);
        const uint64_t has = part && ggl_os_stat(part, &st) && (uint64_t)st.size <= f[i].size
                                 ? (uint64_t)st.size
                                 : 0;
        free(part);
        wanted = wanted > UINT64_MAX - f[i].size ? UINT64_MAX : wanted + f[i].size - has;
    }
    if (n == 0 || !ggl_disk_left(f[0].path, &there, NULL) || wanted <= there)
        return GGL_OK;
    return ggl_fail(err, GGL_LIMIT,
                    "the download needs %s, but the disk of %s has only %s free; the environment "
                    "variable LLM_CACHE=FOLDER chooses another place",
                    llm_amount_bytes(a, wanted), f[0].path, llm_amount_bytes(b, there));
}
