#include "recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../common/clock.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"

enum { BUFFER = 1 << 16 };

struct recorder {
    ggl_new_file *file;
    FILE *f; /* its stream */
    uint64_t start;
    int n_users, n_tracks;
    bool has_events;
    pthread_mutex_t lock;
    recorder *next;
    char buffer[BUFFER];
};

static recorder *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t ggl_recorder_now(const recorder *r) {
    return backend_now() - r->start;
}

uint64_t ggl_recorder_at(const recorder *r, uint64_t ns) {
    return ns > r->start ? ns - r->start : 0;
}

/* --- text ------------------------------------------------------------------------------------- */

/* Names come from files: what is not printable ASCII is written as its code. */
static void put_string(FILE *f, const char *s) {
    putc_unlocked('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c >= 0x7f)
            fprintf(f, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else
            putc_unlocked(c, f);
    }
    putc_unlocked('"', f);
}

/* The format counts in microseconds; three digits more keep what was measured exact. */
static void put_time(FILE *f, const char *key, uint64_t ns) {
    fprintf(f, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void put_args(FILE *f, const trace_arg *arg) {
    fputs(",\"args\":{", f);
    for (const trace_arg *a = arg; a->key; a++) {
        fprintf(f, "%s\"%s\":", a == arg ? "" : ",", a->key);
        if (a->text)
            put_string(f, a->text);
        else
            fprintf(f, "%" PRIu64, a->number);
    }
    putc_unlocked('}', f);
}

static void put_event(recorder *r, const trace_event *e) {
    fputs(r->has_events ? ",\n{\"name\":" : "[\n{\"name\":", r->f);
    r->has_events = true;
    put_string(r->f, e->name);
    fprintf(r->f, ",\"cat\":\"%s\",\"ph\":\"%c\",\"pid\":1,\"tid\":%d", e->kind, e->phase,
            e->track);
    put_time(r->f, "ts", e->begin);
    if (e->phase == 'X')
        put_time(r->f, "dur", e->end - e->begin);
    put_args(r->f, e->arg);
    putc_unlocked('}', r->f);
}

void ggl_recorder_write(recorder *r, const trace_event *e) {
    pthread_mutex_lock(&r->lock);
    if (!ggl_new_file_error(r->file)) {
        errno = 0;
        put_event(r, e);
        ggl_new_file_note(r->file);
    }
    pthread_mutex_unlock(&r->lock);
}

int ggl_recorder_track(recorder *r, const char *name) {
    pthread_mutex_lock(&r->lock);
    int track = ++r->n_tracks;
    pthread_mutex_unlock(&r->lock);
    ggl_recorder_write(r, &(trace_event){.phase = 'M',
                                         .track = track,
                                         .name = "thread_name",
                                         .kind = "names",
                                         .arg = {{"name", name, 0}}});
    return track;
}

/* --- files ------------------------------------------------------------------------------------ */

static recorder *find(const char *path) {
    for (recorder *r = all; r; r = r->next)
        if (ggl_new_file_is(r->file, path))
            return r;
    return NULL;
}

static recorder *create(const char *path, ggl_error *err) {
    recorder *r = ggl_calloc(1, sizeof *r);
    if (!r) {
        ggl_fail(err, GGL_NOMEM, "out of memory for a trace");
        return NULL;
    }
    ggl_status st = ggl_new_file_open(&r->file, path, err);
    if (st != GGL_OK) {
        (void)ggl_within(err, st, "the trace");
        ggl_free(r);
        return NULL;
    }
    r->f = ggl_new_file_stream(r->file);
    setvbuf(r->f, r->buffer, _IOFBF, sizeof r->buffer);
    pthread_mutex_init(&r->lock, NULL);
    r->start = backend_now();
    r->next = all;
    all = r;
    return r;
}

ggl_status ggl_recorder_open(recorder **out, const char *path, ggl_error *err) {
    ggl_error own = {0};
    pthread_mutex_lock(&all_lock);
    recorder *r = find(path);
    if (!r)
        r = create(path, err = err ? err : &own);
    if (r)
        r->n_users++;
    pthread_mutex_unlock(&all_lock);
    *out = r;
    return r ? GGL_OK : err->status;
}

static void destroy(recorder *r) {
    for (recorder **at = &all; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    pthread_mutex_destroy(&r->lock);
    ggl_free(r);
}

ggl_status ggl_recorder_close(recorder *r, ggl_error *err) {
    ggl_status st = GGL_OK;
    pthread_mutex_lock(&all_lock);
    if (--r->n_users == 0) {
        fputs(r->has_events ? "\n]\n" : "[]\n", r->f);
        st = ggl_new_file_commit(r->file, err);
        if (st != GGL_OK)
            st = ggl_within(err, st, "the trace");
        destroy(r);
    }
    pthread_mutex_unlock(&all_lock);
    return st;
}
