#include "ffmpeg.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_child.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"
#include "ggl/internal/show.h"

enum {
    PART = 1 << 14,
    PATIENCE = 60 /* seconds without a sample */,
    ASK_MS = 100,
    MOST_HOURS = 48,
    WHY = 480
};
#define MOST_BYTES ((int64_t)4 << 30)

typedef struct ffmpeg {
    sound_bytes *b;
    const char *format, *kind;
    int rate;
    char *path; /* after "file:" */
    bool is_temporary;
    os_child child;
    bool runs;
    int64_t n_frames; /* that were given */
    char why[WHY];    /* what it says first on standard error */
    size_t n_why;
    size_t n, at; /* bytes of `part`, and of these, those that were given */
    unsigned char part[PART];
} ffmpeg;

/* --- the file --------------------------------------------------------------------------------- */

static const char *temporary_folder(void) {
    static const char *const names[] = {"TMPDIR", "TEMP", "TMP"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *folder = getenv(names[k]);
        if (folder && *folder)
            return folder;
    }
    return "/tmp";
}

/* Copies all bytes to a new file. */
static ggl_status copy_to(ffmpeg *f, int fd, ggl_error *err) {
    int64_t all = 0;
    size_t got = 1;
    while (got > 0) {
        const ggl_status st = llm_sound_bytes_some(f->b, f->part, sizeof f->part, &got, err);
        if (st != GGL_OK)
            return st;
        all += (int64_t)got;
        if (all > MOST_BYTES)
            return ggl_fail(err, GGL_LIMIT, "%s: has more than 4 GiB", f->b->name);
        for (size_t at = 0; at < got;) {
            const int64_t n = ggl_os_write(fd, f->part + at, got - at);
            if (n <= 0 && errno != EINTR)
                return ggl_fail(err, GGL_IO, "%s: cannot be written: %s", f->path, strerror(errno));
            at += n > 0 ? (size_t)n : 0;
        }
    }
    return GGL_OK;
}

/* Puts the bytes into a file of our own. */
static ggl_status make_file(ffmpeg *f, ggl_error *err) {
    uint64_t number = 0;
    const size_t size = strlen(temporary_folder()) + 64;
    f->path = ggl_calloc(size, 1);
    if (!f->path || !ggl_os_random(&number, sizeof number))
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", f->b->name);
    snprintf(f->path, size, "%s/llm-sound-%ld-%016llx", temporary_folder(), ggl_os_pid(),
             (unsigned long long)number);
    const int fd = ggl_os_open(f->path, OS_WRITE | OS_CREATE | OS_NEW | OS_PRIVATE);
    if (fd < 0)
        return ggl_fail(err, GGL_IO, "%s: cannot be written for ffmpeg: %s", f->path,
                        strerror(errno));
    f->is_temporary = true;
    ggl_status st = llm_sound_bytes_seek(f->b, 0, err);
    if (st == GGL_OK)
        st = copy_to(f, fd, err);
    ggl_os_close(fd);
    return st;
}

static ggl_status choose_file(ffmpeg *f, ggl_error *err) {
    const size_t size = strlen(f->b->name) + 1;
    if (f->b->size < 0 || !f->b->owns_fd || f->b->begin != 0)
        return make_file(f, err);
    f->path = ggl_calloc(size, 1);
    if (!f->path)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", f->b->name);
    memcpy(f->path, f->b->name, size);
    return GGL_OK;
}

/* --- the program ------------------------------------------------------------------------------- */

static void stop(ffmpeg *f) {
    if (!f->runs)
        return;
    ggl_os_child_stop(&f->child);
    (void)ggl_os_child_end(&f->child);
    f->runs = false;
}

/* Starts the program. Returns 0, or an errno. */
static int start(ffmpeg *f) {
    char rate[16];
    const size_t size = strlen(f->path) + 8;
    char *file = ggl_calloc(size, 1);
    if (!file)
        return ENOMEM;
    snprintf(file, size, "file:%s", f->path);
    snprintf(rate, sizeof rate, "%d", f->rate);
    const char *const argv[] = {"ffmpeg",
                                "-nostdin",
                                "-v",
                                "error",
                                "-protocol_whitelist",
                                "file",
                                "-f",
                                f->format,
                                "-i",
                                file,
                                "-map",
                                "0:a:0",
                                "-ac",
                                "1",
                                "-ar",
                                rate,
                                "-c:a",
                                "pcm_f32le",
                                "-f",
                                "f32le",
                                "-protocol_whitelist",
                                "pipe",
                                "pipe:1",
                                NULL};
    const int code = ggl_os_child_start(&f->child, argv);
    ggl_free(file);
    f->runs = code == 0;
    f->n = f->at = f->n_why = 0;
    f->n_frames = 0;
    if (f->runs)
        ggl_os_child_tell(&f->child, "", 0); /* closes its input */
    return code;
}

/* Reads what it says on standard error, so that it is never kept waiting for that. */
static void listen(ffmpeg *f) {
    char text[512];
    while (ggl_os_child_wait(f->child.error, 0) == 1) {
        const int64_t n = ggl_os_read(f->child.error, text, sizeof text);
        if (n <= 0)
            return;
        for (int64_t i = 0; i < n && f->n_why + 1 < sizeof f->why; i++)
            f->why[f->n_why++] = text[i];
        f->why[f->n_why] = 0;
    }
}

/* Returns its first line behind what names its part, "[mp3 @ 0x55d0] ", or the file, "file:PATH: ", which may be one of ours. */
static const char *what_it_says(const ffmpeg *f) {
    static const char file[] = "file:";
    const size_t n_file = sizeof file - 1, n = strlen(f->path);
    const char *s = f->why, *end = *s == '[' ? strstr(s, "] ") : NULL;
    s = end ? end + 2 : s;
    if (strncmp(s, file, n_file) == 0 && strncmp(s + n_file, f->path, n) == 0 &&
        strncmp(s + n_file + n, ": ", 2) == 0)
        s += n_file + n + 2;
    return s;
}

/* It has ended: says whether that was an error. */
static ggl_status ended(ffmpeg *f, ggl_error *err) {
    char shown[4 * WHY + 1];
    listen(f);
    f->runs = false;
    if (ggl_os_child_end(&f->child) == 0)
        return GGL_OK;
    const char *words = what_it_says(f);
    const size_t line = strcspn(words, "\n");
    ggl_show(shown, sizeof shown, words, line);
    return ggl_fail(err, GGL_FORMAT, "%s: is %s, which ffmpeg cannot read: %s", f->b->name, f->kind,
                    line > 0 ? shown : "it ended with an error");
}

/* Reads more bytes behind those that are left. *more: not at the end. */
static ggl_status fill(ffmpeg *f, bool *more, ggl_error *err) {
    int waited = 0;
    *more = false;
    memmove(f->part, f->part + f->at, f->n - f->at);
    f->n -= f->at;
    f->at = 0;
    while (f->runs) {
        listen(f);
        const int ready = ggl_os_child_wait(f->child.out, ASK_MS);
        waited += ready == 0;
        if (f->b->cancelled && f->b->cancelled(f->b->cancelled_ctx)) {
            stop(f);
            return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
        }
        if (ready < 0 || waited > PATIENCE * 1000 / ASK_MS) {
            stop(f);
            return ggl_fail(err, GGL_IO, "%s: ffmpeg gave no sample for %d seconds", f->b->name,
                            PATIENCE);
        }
        if (ready == 0)
            continue;
        const int64_t n = ggl_os_read(f->child.out, f->part + f->n, sizeof f->part - f->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ended(f, err);
        f->n += (size_t)n;
        *more = true;
        return GGL_OK;
    }
    return GGL_OK;
}

static ggl_status ffmpeg_read(sound_decoder *d, float *to, int64_t n, int64_t *got,
                              ggl_error *err) {
    ffmpeg *f = d->ctx;
    bool more = true;
    *got = 0;
    while (f->n - f->at < sizeof *to && more) {
        const ggl_status st = fill(f, &more, err);
        if (st != GGL_OK)
            return st;
    }
    while (*got < n && f->n - f->at >= sizeof *to) {
        const unsigned char *p = f->part + f->at;
        const uint32_t bits =
            p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        memcpy(&to[*got], &bits, sizeof bits);
        if (!isfinite(to[*got]))
            return ggl_fail(err, GGL_FORMAT, "%s: sample %lld is no number", f->b->name,
                            (long long)(f->n_frames + *got));
        ++*got;
        f->at += sizeof *to;
    }
    f->n_frames += *got;
    return f->n_frames / f->rate < MOST_HOURS * 3600
               ? GGL_OK
               : ggl_fail(err, GGL_LIMIT, "%s: has more than %d hours", f->b->name, MOST_HOURS);
}

static ggl_status ffmpeg_rewind(sound_decoder *d, ggl_error *err) {
    ffmpeg *f = d->ctx;
    stop(f);
    const int code = start(f);
    return code == 0 ? GGL_OK
                     : ggl_fail(err, GGL_IO, "%s: ffmpeg cannot be started: %s", f->b->name,
                                strerror(code));
}

static void ffmpeg_close(sound_decoder *d) {
    ffmpeg *f = d->ctx;
    if (!f)
        return;
    stop(f);
    if (f->is_temporary)
        (void)ggl_os_remove(f->path);
    ggl_free(f->path);
    ggl_free(f);
    d->ctx = NULL;
}

ggl_status llm_sound_ffmpeg(sound_decoder *d, sound_bytes *b, const char *format, const char *kind,
                            int rate, bool *is_there, ggl_error *err) {
    bool more;
    *is_there = true;
    ffmpeg *f = ggl_calloc(1, sizeof *f);
    if (!f)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", b->name);
    f->b = b;
    f->format = format;
    f->kind = kind;
    f->rate = rate > 0 ? rate : 48000;
    *d = (sound_decoder){.rate = f->rate,
                         .n_channels = 1,
                         .n_frames = -1,
                         .ctx = f,
                         .read = ffmpeg_read,
                         .rewind = ffmpeg_rewind,
                         .close = ffmpeg_close};
    ggl_status st = choose_file(f, err);
    if (st != GGL_OK)
        return st;
    const int code = start(f);
    *is_there = code != ENOENT;
    if (code)
        return ggl_fail(err, code == ENOENT ? GGL_UNSUPPORTED : GGL_IO,
                        "%s: ffmpeg cannot be started: %s", b->name, strerror(code));
    return fill(f, &more, err);
}
