#include "recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/bytes.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/os_fs.h"

enum { BUFFER = 1 << 16 };

struct recorder {
    ggl_new_file *file; /* NULL: events are kept */
    FILE *f;            /* its stream */
    char name[RECORDER_NAME];
    ggl_bytes kept; /* events: those before `taken` are gone */
    size_t taken, limit;
    uint64_t lost;
    uint64_t start;
    int n_users, n_tracks;
    bool has_events;
    os_mutex lock;
    recorder *next;
    char buffer[BUFFER];
};

static recorder *all;
static os_mutex all_lock = OS_MUTEX_INIT;

uint64_t ggl_recorder_now(const recorder *r) {
    return ggl_os_clock() - r->start;
}

uint64_t ggl_recorder_at(const recorder *r, uint64_t ns) {
    return ns > r->start ? ns - r->start : 0;
}

/* --- text ------------------------------------------------------------------------------------- */

/* Names come from files, and events from other ranks: what is not printable ASCII is written as its code. */
static void put_string(FILE *f, const char *s) {
    ggl_os_putc('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c >= 0x7f)
            fprintf(f, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else
            ggl_os_putc(c, f);
    }
    ggl_os_putc('"', f);
}

/* The format counts in microseconds; three digits more keep what was measured exact. */
static void put_time(FILE *f, const char *key, uint64_t ns) {
    fprintf(f, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void put_args(FILE *f, const trace_arg *arg) {
    fputs(",\"args\":{", f);
    for (const trace_arg *a = arg; a->key; a++) {
        if (a != arg)
            ggl_os_putc(',', f);
        put_string(f, a->key);
        ggl_os_putc(':', f);
        if (a->text)
            put_string(f, a->text);
        else
            fprintf(f, "%" PRIu64, a->number);
    }
    ggl_os_putc('}', f);
}

static void put_event(recorder *r, const trace_event *e) {
    fputs(r->has_events ? ",\n{\"name\":" : "[\n{\"name\":", r->f);
    r->has_events = true;
    put_string(r->f, e->name);
    fputs(",\"cat\":", r->f);
    put_string(r->f, e->kind);
    fprintf(r->f, ",\"ph\":\"%c\",\"pid\":1,\"tid\":%d", e->phase, e->track);
    put_time(r->f, "ts", e->begin);
    if (e->phase == 'X')
        put_time(r->f, "dur", e->end - e->begin);
    put_args(r->f, e->arg);
    ggl_os_putc('}', r->f);
}

/* --- kept events -------------------------------------------------------------------------------- */

/* Moves the events that are left to the front of the memory. */
static void close_up(recorder *r) {
    r->kept.n -= r->taken;
    if (r->kept.n > 0)
        memmove(r->kept.at, r->kept.at + r->taken, r->kept.n);
    r->taken = 0;
}

/* Its length, 0 for NULL, and the text with its NUL, so that readers need no copy. */
static void keep_text(ggl_bytes *b, const char *text) {
    const size_t n = text ? strlen(text) + 1 : 0;
    ggl_put_u32(b, (uint32_t)n);
    ggl_put(b, text, n);
}

static void keep_event(recorder *r, const trace_event *e) {
    ggl_bytes *b = &r->kept;
    if (e->phase != 'X') /* rank 0 names the rows, and knows the memory */
        return;
    if (r->taken > b->n / 2)
        close_up(r);
    const size_t at = b->n;
    kept_event head = {.id = e->node ? (uint32_t)e->node->id : 0,
                       .begin = e->begin,
                       .end = e->end,
                       .node = (uintptr_t)e->node,
                       .n = (uint32_t)e->n,
                       .prepares = e->prepares};
    ggl_put(b, &head, sizeof head);
    if (!e->node) {
        keep_text(b, e->name);
        keep_text(b, e->kind);
        for (const trace_arg *a = e->arg; a->key; a++) {
            keep_text(b, a->key);
            keep_text(b, a->text);
            ggl_put_u64(b, a->number);
        }
        keep_text(b, NULL);
        (void)ggl_put_room(b, (8 - b->n % 8) % 8);
    }
    head.size = (uint32_t)(b->n - at);
    if (b->failed || b->n - r->taken > r->limit) {
        r->lost++;
        b->n = at;
        b->failed = false;
    } else {
        memcpy(b->at + at, &head, sizeof head);
    }
}

size_t ggl_recorder_take(recorder *r, char *to, size_t size, uint64_t *left, uint64_t *lost) {
    size_t n = 0;
    ggl_os_mutex_lock(&r->lock);
    while (r->taken < r->kept.n) {
        kept_event head;
        memcpy(&head, r->kept.at + r->taken, sizeof head);
        if (head.size > size - n)
            break;
        memcpy(to + n, r->kept.at + r->taken, head.size);
        n += head.size;
        r->taken += head.size;
    }
    *left = r->kept.n - r->taken;
    *lost = r->lost;
    ggl_os_mutex_unlock(&r->lock);
    return n;
}

static const char *read_text(ggl_reader *r) {
    const uint32_t n = ggl_get_u32(r);
    const char *text = n ? ggl_get(r, n) : NULL;
    if (text && text[n - 1] == '\0')
        return text;
    r->failed = r->failed || n > 0;
    return NULL;
}

size_t ggl_kept_read(const char *at, size_t size, kept_event *head, trace_event *e) {
    ggl_reader r = {at, at + size, false};
    ggl_get_to(&r, head, sizeof *head);
    if (r.failed || head->size > size || head->size < sizeof *head || head->size % 8 != 0)
        return 0;
    r.end = at + head->size;
    *e = (trace_event){.phase = 'X',
                       .begin = head->begin,
                       .end = head->end,
                       .n = head->n,
                       .prepares = head->prepares != 0};
    if (head->node)
        return head->size;
    e->name = read_text(&r);
    e->kind = read_text(&r);
    for (int k = 0; k < TRACE_MAX_ARGS && (e->arg[k].key = read_text(&r)); k++) {
        e->arg[k].text = read_text(&r);
        e->arg[k].number = ggl_get_u64(&r);
    }
    return r.failed || !e->name || !e->kind ? 0 : head->size;
}

void ggl_recorder_write(recorder *r, const trace_event *e) {
    ggl_os_mutex_lock(&r->lock);
    if (!r->file) {
        keep_event(r, e);
    } else if (!ggl_new_file_error(r->file)) {
        errno = 0;
        put_event(r, e);
        ggl_new_file_note(r->file);
    }
    ggl_os_mutex_unlock(&r->lock);
}

int ggl_recorder_track(recorder *r, const char *name) {
    ggl_os_mutex_lock(&r->lock);
    int track = ++r->n_tracks;
    ggl_os_mutex_unlock(&r->lock);
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
        if (r->file ? ggl_new_file_is(r->file, path) : strcmp(r->name, path) == 0)
            return r;
    return NULL;
}

static void add(recorder *r) {
    ggl_os_mutex_init(&r->lock);
    r->next = all;
    all = r;
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
    r->start = ggl_os_clock();
    add(r);
    return r;
}

ggl_status ggl_recorder_keep(recorder **out, uint64_t start, size_t limit, char name[RECORDER_NAME],
                             ggl_error *err) {
    static unsigned number;
    recorder *r = *out = ggl_calloc(1, sizeof *r);
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trace");
    r->start = start;
    r->limit = limit;
    r->n_users = 1;
    ggl_os_mutex_lock(&all_lock);
    snprintf(r->name, sizeof r->name, "\x01kept %u", ++number); /* no file has such a name */
    memcpy(name, r->name, sizeof r->name);
    add(r);
    ggl_os_mutex_unlock(&all_lock);
    return GGL_OK;
}

ggl_status ggl_recorder_open(recorder **out, const char *path, ggl_error *err) {
    ggl_error own = {0};
    ggl_os_mutex_lock(&all_lock);
    recorder *r = find(path);
    if (!r)
        r = create(path, err = err ? err : &own);
    if (r)
        r->n_users++;
    ggl_os_mutex_unlock(&all_lock);
    *out = r;
    return r ? GGL_OK : err->status;
}

static void destroy(recorder *r) {
    for (recorder **at = &all; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    ggl_os_mutex_destroy(&r->lock);
    ggl_bytes_fini(&r->kept);
    ggl_free(r);
}

ggl_status ggl_recorder_close(recorder *r, ggl_error *err) {
    ggl_status st = GGL_OK;
    ggl_os_mutex_lock(&all_lock);
    if (--r->n_users == 0) {
        if (r->file) {
            fputs(r->has_events ? "\n]\n" : "[]\n", r->f);
            st = ggl_new_file_commit(r->file, err);
        }
        if (st != GGL_OK)
            st = ggl_within(err, st, "the trace");
        destroy(r);
    }
    ggl_os_mutex_unlock(&all_lock);
    return st;
}
