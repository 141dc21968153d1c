#include "line_history.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "common/user_path.h"

enum { MOST_FILE = 16 << 20, MOST_ENTRY = 1 << 16 }; /* bytes */

struct line_history {
    char *path;
    char **entry; /* [n], the oldest first */
    size_t n, cap, most;
    char problem[320];
    bool broken, reported;
};

static void set_problem(line_history *h, int error) {
    if (h->broken)
        return;
    h->broken = true;
    snprintf(h->problem, sizeof h->problem, "%.200s: %s", h->path, strerror(error));
}

/* --- entries ---------------------------------------------------------------------------------- */

static bool keep(line_history *h, char *text) {
    if (!text || !ggl_grow(&h->entry, &h->cap, h->n + 1, sizeof *h->entry)) {
        free(text);
        return false;
    }
    if (h->n == h->most) {
        free(h->entry[0]);
        memmove(h->entry, h->entry + 1, --h->n * sizeof *h->entry);
    }
    h->entry[h->n++] = text;
    return true;
}

/* Writes the line of an entry to out, of at least 2 * strlen(text) + 1 bytes; returns its length. */
static size_t encode(const char *text, char *out) {
    size_t n = 0;
    for (; *text; text++) {
        if (*text == '\n' || *text == '\\')
            out[n++] = '\\';
        out[n++] = *text;
        if (*text == '\n')
            out[n - 1] = 'n';
    }
    out[n++] = '\n';
    return n;
}

/* Returns the entry of a line; NULL: damaged, empty, or out of memory. */
static char *decode(const char *line, size_t n) {
    if (n == 0 || n > MOST_ENTRY)
        return NULL;
    for (size_t i = 0, len; i < n; i += len) {
        len = ggl_utf8_length(line + i, n - i);
        if (len == 0 || ((unsigned char)line[i] < 32 && line[i] != '\t') || line[i] == 127)
            return NULL;
    }
    char *text = malloc(n + 1);
    size_t m = 0;
    for (size_t i = 0; text && i < n; i++) {
        const bool escape = line[i] == '\\' && i + 1 < n;
        i += escape;
        text[m++] = (char)(escape && line[i] == 'n' ? '\n' : line[i]);
    }
    if (text)
        text[m] = '\0';
    return text;
}

static void read_lines(line_history *h, const char *data, size_t n, size_t *n_lines) {
    *n_lines = 0;
    for (size_t at = 0; at < n; ++*n_lines) {
        const char *end = memchr(data + at, '\n', n - at);
        if (!end)
            break; /* an entry that was not written completely */
        const size_t len = (size_t)(end - data) - at;
        char *text = decode(data + at, len);
        if (text)
            keep(h, text);
        at += len + 1;
    }
}

/* --- the file --------------------------------------------------------------------------------- */

/* Takes the lock of an open file. Waits a second at most: a process that is stopped may have it, and
 * then no lock is better than none of the program. */
static bool lock(int fd) {
    for (int i = 0; i < 100; i++) {
        if (ggl_os_lock(fd, true, false))
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        ggl_os_sleep(10000000);
    }
    return false;
}

/* Opens and locks the file. Another process may replace it between the two. Returns a descriptor, or
 * -1 with errno set. */
static int open_locked(const char *path, int flags, bool *locked) {
    for (int i = 0; i < 20; i++) {
        os_stat of_fd;
        const int fd = ggl_os_open(path, flags | OS_NO_WAIT | OS_PRIVATE);
        if (fd < 0)
            return -1;
        if (!ggl_os_stat_fd(fd, &of_fd) || of_fd.kind != OS_FILE) {
            ggl_os_close(fd);
            errno = of_fd.kind == OS_FOLDER ? EISDIR : EINVAL;
            return -1;
        }
        *locked = lock(fd);
        if (!*locked || ggl_os_is_at(fd, path))
            return fd;
        ggl_os_close(fd);
    }
    errno = EAGAIN;
    return -1;
}

/* Writes everything; false with errno set if that fails. */
static bool write_all(int fd, const char *data, size_t n) {
    while (n > 0) {
        const int64_t done = ggl_os_write(fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            errno = done == 0 ? ENOSPC : errno;
            return false;
        }
        data += done;
        n -= (size_t)done;
    }
    return true;
}

/* Replaces the file by one with the entries in memory. The old one stays if that fails. */
static void compact(line_history *h) {
    char *real = ggl_os_real_path(h->path), *line = malloc(2 * MOST_ENTRY + 1);
    char temporary[4200];
    if (!real || !line ||
        snprintf(temporary, sizeof temporary, "%s.tmp-%ld", real, (long)ggl_os_pid()) >=
            (int)sizeof temporary)
        goto done;
    const int fd = ggl_os_open(temporary, OS_WRITE | OS_CREATE | OS_NEW | OS_PRIVATE);
    if (fd < 0)
        goto done;
    bool good = true;
    for (size_t i = 0; i < h->n && good; i++)
        good = write_all(fd, line, encode(h->entry[i], line));
    good = good && ggl_os_sync(fd);
    good = ggl_os_close(fd) == 0 && good;
    if (!good || !ggl_os_rename(temporary, real))
        ggl_os_remove(temporary);
done:
    free(real);
    free(line);
}

static void read_file(line_history *h) {
    bool locked = false;
    const int fd = open_locked(h->path, OS_READ, &locked);
    if (fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            set_problem(h, errno);
        return;
    }
    const int64_t size = ggl_os_seek(fd, 0, SEEK_END),
                  from = size > MOST_FILE ? size - MOST_FILE : 0;
    const size_t n = (size_t)(size - from);
    char *data = malloc(n + 1);
    size_t done = 0, n_lines = 0;
    for (int64_t got = 1; data && done < n && got > 0; done += got > 0 ? (size_t)got : 0)
        got = ggl_os_read_at(fd, data + done, n - done, from + (int64_t)done);
    if (data)
        read_lines(h, data, done, &n_lines);
    free(data);
    if (locked && h->most > 0 && (n_lines > 2 * h->most || from > 0))
        compact(h);
    ggl_os_close(fd);
}

static void append(line_history *h, const char *text) {
    bool locked = false;
    char *line = malloc(2 * strlen(text) + 1);
    int fd = open_locked(h->path, OS_READ | OS_WRITE | OS_APPEND | OS_CREATE, &locked);
    if (fd < 0 && errno == ENOENT) {
        ggl_os_make_parents(h->path, true);
        fd = open_locked(h->path, OS_READ | OS_WRITE | OS_APPEND | OS_CREATE, &locked);
    }
    if (fd < 0 || !line) {
        set_problem(h, fd < 0 ? errno : ENOMEM);
    } else {
        const int64_t before = ggl_os_seek(fd, 0, SEEK_END);
        char last = '\n'; /* of an entry that a process did not finish: it stays one of its own */
        if (before > 0)
            (void)!ggl_os_read_at(fd, &last, 1, before - 1);
        if ((last != '\n' && !write_all(fd, "\n", 1)) || !write_all(fd, line, encode(text, line))) {
            set_problem(h, errno);
            if (locked && before >= 0) /* not half an entry */
                (void)!ggl_os_truncate(fd, before);
        }
    }
    if (fd >= 0)
        ggl_os_close(fd);
    free(line);
}

/* --- the public functions --------------------------------------------------------------------- */

line_history *line_history_new(const char *path, size_t most) {
    line_history *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->most = most > 0 ? most : 1;
    h->path = path ? ggl_copy_text(path) : NULL;
    if (h->path)
        read_file(h);
    return h;
}

void line_history_free(line_history *h) {
    if (!h)
        return;
    for (size_t i = 0; i < h->n; i++)
        free(h->entry[i]);
    ggl_free(h->entry);
    free(h->path);
    free(h);
}

size_t line_history_n(const line_history *h) {
    return h->n;
}

const char *line_history_get(const line_history *h, size_t i) {
    return h->entry[i];
}

void line_history_add(line_history *h, const char *text) {
    const size_t n = strlen(text);
    if (n == 0 || n > MOST_ENTRY || (h->n > 0 && strcmp(h->entry[h->n - 1], text) == 0))
        return;
    if (keep(h, ggl_copy_text(text)) && h->path && !h->broken)
        append(h, text);
}

const char *line_history_problem(line_history *h) {
    if (!h->broken || h->reported)
        return NULL;
    h->reported = true;
    return h->problem;
}

char *line_history_path(const char *name) {
    char file[64];
    snprintf(file, sizeof file, "%s.history", name);
    return llm_user_path("XDG_DATA_HOME", ".local/share", file);
}
