#include "bytes.h"

#include <errno.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_child.h"
#include "ggl/internal/os_fs.h"

enum { BUFFER = 1 << 16, ASK_MS = 50 };

ggl_status llm_sound_bytes_open(sound_bytes *b, const char *path, ggl_error *err) {
    const bool is_input = strcmp(path, "-") == 0;
    os_stat about;
    *b = (sound_bytes){.name = is_input ? "standard input" : path,
                       .size = -1,
                       .owns_fd = !is_input,
                       .fd = is_input ? OS_STDIN : ggl_os_open(path, OS_READ)};
    if (b->fd < 0 || !ggl_os_stat_fd(b->fd, &about)) {
        const ggl_status st = ggl_fail(err, GGL_IO, "%s: %s", b->name, strerror(errno));
        llm_sound_bytes_close(b);
        return st;
    }
    b->buffer = b->own = ggl_calloc(BUFFER, 1);
    if (!b->own) {
        const ggl_status st = ggl_fail(err, GGL_NOMEM, "%s: out of memory", b->name);
        llm_sound_bytes_close(b);
        return st;
    }
    const int64_t begin = about.kind == OS_FILE ? ggl_os_seek(b->fd, 0, SEEK_CUR) : -1;
    if (begin >= 0) {
        b->begin = begin;
        b->size = (int64_t)about.size > begin ? (int64_t)about.size - begin : 0;
    }
    return GGL_OK;
}

void llm_sound_bytes_memory(sound_bytes *b, const void *data, size_t n, const char *name) {
    *b = (sound_bytes){.name = name, .size = (int64_t)n, .fd = -1, .buffer = data, .n = (int64_t)n};
}

void llm_sound_bytes_close(sound_bytes *b) {
    if (b->owns_fd && b->fd >= 0)
        ggl_os_close(b->fd);
    ggl_free(b->own);
    *b = (sound_bytes){.fd = -1};
}

/* Waits for a pipe or a device to have something, or to end, unless the caller wants it no more. */
static ggl_status wait_for(const sound_bytes *b, ggl_error *err) {
    int ready = 0;
    while (b->size < 0 && b->cancelled && ready == 0) {
        if (b->cancelled(b->cancelled_ctx))
            return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
        ready = ggl_os_child_wait(b->fd, ASK_MS);
        if (ready < 0 && errno == EINTR)
            ready = 0;
    }
    return GGL_OK;
}

/* Reads more bytes behind those in the buffer, or in their place once it is full. *more: not at the end. */
static ggl_status fill(sound_bytes *b, bool *more, ggl_error *err) {
    *more = false;
    if (b->fd < 0)
        return GGL_OK;
    if (b->n == BUFFER) {
        b->first += b->n;
        b->n = 0;
    }
    int64_t got;
    const ggl_status st = wait_for(b, err);
    if (st != GGL_OK)
        return st;
    do
        got = ggl_os_read(b->fd, b->own + b->n, (size_t)(BUFFER - b->n));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return ggl_fail(err, GGL_IO, "%s: %s", b->name, strerror(errno));
    b->n += got;
    *more = got > 0;
    return GGL_OK;
}

ggl_status llm_sound_bytes_some(sound_bytes *b, void *to, size_t n, size_t *got, ggl_error *err) {
    bool more = true;
    *got = 0;
    while (b->at >= b->first + b->n && more && n > 0) {
        const ggl_status st = fill(b, &more, err);
        if (st != GGL_OK)
            return st;
    }
    const int64_t left = b->first + b->n - b->at;
    if (left <= 0 || n == 0)
        return GGL_OK;
    *got = (uint64_t)left < n ? (size_t)left : n;
    memcpy(to, b->buffer + (b->at - b->first), *got);
    b->at += (int64_t)*got;
    return GGL_OK;
}

ggl_status llm_sound_bytes_read(sound_bytes *b, void *to, size_t n, size_t *got, ggl_error *err) {
    ggl_status st;
    size_t some;
    *got = 0;
    do {
        st = llm_sound_bytes_some(b, (char *)to + *got, n - *got, &some, err);
        *got += some;
    } while (st == GGL_OK && some > 0 && *got < n);
    return st;
}

ggl_status llm_sound_bytes_seek(sound_bytes *b, int64_t at, ggl_error *err) {
    const bool is_near = at >= b->first && at <= b->first + b->n;
    if (b->size < 0 && at < b->first)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: a pipe can be read once only", b->name);
    if (b->fd >= 0 && b->size >= 0 && !is_near) {
        if (ggl_os_seek(b->fd, b->begin + at, SEEK_SET) < 0)
            return ggl_fail(err, GGL_IO, "%s: byte %lld: %s", b->name, (long long)at,
                            strerror(errno));
        b->first = at;
        b->n = 0;
    }
    b->at = at; /* a pipe is read until there */
    return GGL_OK;
}
