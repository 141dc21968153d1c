#include "streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_thread.h"
#include "owner_shares.h"

typedef struct reader {
    struct reader *next;
    http_reply *reply;
} reader;

struct stream_log {
    stream_log *next; /* in the list of streams, the newest first */
    stream_table *of;
    char id[STREAM_ID + 1];
    uint64_t owner;
    char media_type[64];
    char *bytes; /* the last n of n_all */
    size_t n, cap;
    uint64_t n_all;
    int64_t started, ended; /* seconds since 1970; ended 0: not yet */
    int64_t ended_at,
        alone; /* of the clock: the end; since when nobody has read it, 0: somebody does */
    bool is_cancelled;
    bool is_listed,
        is_written; /* the list, and the answer that writes it, have it: the last one frees it */
    reader *readers;
    memory_hold held;
};

struct stream_table {
    os_mutex lock; /* of all logs */
    memory *memory;
    int64_t ns;
    int n; /* logs in the list */
    stream_log *first;
};

stream_table *streams_new(memory *m, int64_t seconds) {
    stream_table *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->memory = m;
    s->ns = seconds * 1000000000;
    ggl_os_mutex_init(&s->lock);
    return s;
}

/* --- logs, with the lock -------------------------------------------------------------------------- */

static void end_readers(stream_log *l) {
    for (reader *x; (x = l->readers) != NULL;) {
        l->readers = x->next;
        http_reply_end(x->reply);
        ggl_free(x);
    }
}

static void free_if_unused(stream_log *l) {
    if (l->is_listed || l->is_written)
        return;
    end_readers(l);
    memory_force(&l->held, 0);
    ggl_free(l->bytes);
    ggl_free(l);
}

/* Takes a log out of the list. */
static void forget(stream_log **at) {
    stream_log *l = *at;
    *at = l->next;
    l->of->n--;
    l->is_listed = false;
    if (l->is_written)
        l->is_cancelled = true;
    free_if_unused(l);
}

static stream_log **find(stream_table *s, ggl_str id, uint64_t owner) {
    stream_log **at = &s->first;
    while (*at && !((*at)->owner == owner && ggl_str_is(id, (*at)->id)))
        at = &(*at)->next;
    return at;
}

static void expire(stream_table *s) {
    const int64_t now = ggl_os_clock();
    for (stream_log **at = &s->first; *at;) {
        if (!(*at)->is_written && now - (*at)->ended_at >= s->ns)
            forget(at);
        else
            at = &(*at)->next;
    }
}

/* Returns the client that has most of the ended streams, in bytes, or by their number. */
static uint64_t find_largest(const stream_table *s, uint64_t own, bool in_bytes) {
    owner_share one[STREAMS_KEPT];
    size_t n = 0;
    for (const stream_log *l = s->first; l && n < STREAMS_KEPT; l = l->next)
        if (!l->is_written)
            one[n++] = (owner_share){l->owner, in_bytes ? l->held.n : 1};
    return owner_of_most(one, n, own);
}

/* Forgets a stream that has ended, to make room for one of `own`: the oldest one of the client that has most, so that no
 * client takes the streams of those that have fewer. False: all go on. */
static bool forget_oldest(stream_table *s, uint64_t own, bool in_bytes) {
    const uint64_t owner = find_largest(s, own, in_bytes);
    stream_log **oldest = NULL;
    for (stream_log **at = &s->first; *at; at = &(*at)->next)
        if (!(*at)->is_written && (*at)->owner == owner &&
            (!oldest || (*at)->ended_at < (*oldest)->ended_at))
            oldest = at;
    if (oldest)
        forget(oldest);
    return oldest;
}

static bool hold(stream_log *l, size_t n) {
    while (!memory_set(&l->held, sizeof *l + n))
        if (!forget_oldest(l->of, l->owner, true))
            return false;
    return true;
}

/* Makes room for n more bytes, at most STREAM_BYTES: the first ones are dropped, a quarter of all at once, so that not every
 * piece moves the others. False: there is no memory. */
static bool make_room(stream_log *l, size_t n) {
    if (l->n + n > STREAM_BYTES) {
        const size_t least = l->n + n - STREAM_BYTES,
                     quarter = l->n < STREAM_BYTES / 4 ? l->n : STREAM_BYTES / 4;
        const size_t n_drop = least > quarter ? least : quarter;
        memmove(l->bytes, l->bytes + n_drop, l->n - n_drop);
        l->n -= n_drop;
    }
    if (l->n + n <= l->cap)
        return true;
    size_t cap = 2 * (l->n + n);
    cap = cap < STREAM_BYTES ? cap : STREAM_BYTES;
    char *bytes = hold(l, l->cap + cap) ? ggl_calloc(cap, 1) : NULL; /* both, for a moment */
    if (!bytes)
        return false;
    if (l->n > 0)
        memcpy(bytes, l->bytes, l->n);
    ggl_free(l->bytes);
    l->bytes = bytes;
    l->cap = cap;
    memory_force(&l->held, sizeof *l + cap);
    return true;
}

static void keep(stream_log *l, const char *bytes, size_t n) {
    l->n_all += n;
    if (n > STREAM_BYTES) {
        bytes += n - STREAM_BYTES;
        n = STREAM_BYTES;
    }
    if (make_room(l, n)) {
        memcpy(l->bytes + l->n, bytes, n);
        l->n += n;
        return;
    }
    ggl_free(l->bytes);
    l->bytes = NULL;
    l->n = l->cap = 0;
    memory_force(&l->held, sizeof *l);
}

/* Takes out readers whose clients have gone. */
static void drop_gone(stream_log *l) {
    for (reader **at = &l->readers; *at;) {
        reader *x = *at;
        if (!http_reply_is_gone(x->reply)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        http_reply_end(x->reply);
        ggl_free(x);
    }
}

/* --- the answer's side ---------------------------------------------------------------------------- */

static stream_log *new_log(stream_table *s, const char *id, uint64_t owner,
                           const char *media_type) {
    stream_log *l = ggl_calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (stream_log){.of = s,
                      .owner = owner,
                      .started = (int64_t)time(NULL),
                      .held = {.of = s->memory, .use = MEMORY_STREAMS}};
    snprintf(l->id, sizeof l->id, "%s", id);
    snprintf(l->media_type, sizeof l->media_type, "%s", media_type);
    if (hold(l, 0) && (s->n < STREAMS_KEPT || forget_oldest(s, owner, false))) {
        s->n++;
        l->is_listed = l->is_written = true;
        l->next = s->first;
        s->first = l;
        return l;
    }
    free_if_unused(l);
    return NULL;
}

stream_log *streams_begin(stream_table *s, const char *id, uint64_t owner, const char *media_type) {
    const size_t n = id ? strlen(id) : 0;
    if (!s || s->ns == 0 || n == 0 || n > STREAM_ID)
        return NULL;
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    stream_log **old = find(s, (ggl_str){id, n}, owner);
    if (*old)
        forget(old);
    stream_log *l = new_log(s, id, owner, media_type);
    ggl_os_mutex_unlock(&s->lock);
    return l;
}

void stream_log_write(stream_log *l, const char *bytes, size_t n) {
    if (!l || n == 0)
        return;
    ggl_os_mutex_lock(&l->of->lock);
    drop_gone(l);
    keep(l, bytes, n);
    for (reader *x = l->readers; x; x = x->next)
        http_reply_write(x->reply, bytes, n);
    ggl_os_mutex_unlock(&l->of->lock);
}

bool stream_log_is_wanted(stream_log *l, bool is_read) {
    if (!l)
        return is_read;
    ggl_os_mutex_lock(&l->of->lock);
    drop_gone(l);
    const int64_t now = ggl_os_clock();
    if (is_read || l->readers)
        l->alone = 0;
    else if (l->alone == 0)
        l->alone = now;
    const bool wanted = !l->is_cancelled && (l->alone == 0 || now - l->alone < l->of->ns);
    ggl_os_mutex_unlock(&l->of->lock);
    return wanted;
}

bool stream_log_is_cancelled(stream_log *l) {
    if (!l)
        return false;
    ggl_os_mutex_lock(&l->of->lock);
    const bool is = l->is_cancelled;
    ggl_os_mutex_unlock(&l->of->lock);
    return is;
}

void stream_log_end(stream_log *l) {
    if (!l)
        return;
    stream_table *s = l->of;
    ggl_os_mutex_lock(&s->lock);
    end_readers(l);
    l->ended = (int64_t)time(NULL);
    l->ended_at = ggl_os_clock();
    l->is_written = false;
    free_if_unused(l);
    ggl_os_mutex_unlock(&s->lock);
}

/* --- the side of those who resume ----------------------------------------------------------------- */

static ggl_status read_log(stream_log *l, uint64_t from, http_reply *r, ggl_error *err) {
    const uint64_t first = l->n_all - l->n;
    if (from < first || from > l->n_all)
        return ggl_fail(err, GGL_LIMIT,
                        "the stream's bytes from %" PRIu64 " on are not there: it has %" PRIu64
                        " to %" PRIu64 "; begin again",
                        from, first, l->n_all);
    const size_t n = (size_t)(l->n_all - from);
    reader *x = l->is_written ? ggl_calloc(1, sizeof *x) : NULL;
    if ((l->is_written && !x) || (n > 0 && !http_reply_reserve(r, n))) {
        ggl_free(x);
        return ggl_fail(
            err, GGL_NOMEM,
            "no memory for %zu bytes of a stream: what waits for clients has all that it may "
            "have (--request-memory); try again later",
            n);
    }
    http_reply_header(r, "Cache-Control", "no-cache");
    http_reply_header(r, "X-Accel-Buffering", "no");
    http_reply_begin(r, 200, l->media_type, true);
    if (n > 0) /* else there may be no bytes at all */
        http_reply_write(r, l->bytes + (from - first), n);
    if (!x) {
        http_reply_end(r);
        return GGL_OK;
    }
    *x = (reader){l->readers, r};
    l->readers = x;
    return GGL_OK;
}

ggl_status streams_read(stream_table *s, const char *id, uint64_t owner, uint64_t from,
                        http_reply *r, ggl_error *err) {
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    stream_log *l = *find(s, (ggl_str){id, strlen(id)}, owner);
    const ggl_status st =
        l ? read_log(l, from, r, err)
          : ggl_fail(err, GGL_NOT_FOUND, "there is no stream of this id, or its time is over");
    ggl_os_mutex_unlock(&s->lock);
    return st;
}

void streams_cancel(stream_table *s, const char *id, uint64_t owner) {
    ggl_os_mutex_lock(&s->lock);
    stream_log **at = find(s, (ggl_str){id, strlen(id)}, owner);
    if (*at)
        forget(at);
    ggl_os_mutex_unlock(&s->lock);
}

void streams_expire(stream_table *s) {
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    ggl_os_mutex_unlock(&s->lock);
}

static bool is_variant(const stream_log *l, ggl_str id) {
    const size_t n = strlen(l->id);
    if (id.n == 0 || n < id.n || memcmp(l->id, id.s, id.n) != 0)
        return false;
    return n == id.n || strncmp(l->id + id.n, "::", 2) == 0;
}

void streams_describe(stream_table *s, ggl_str id, uint64_t owner, llm_json_out *out, size_t *n) {
    char text[200];
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    for (stream_log *l = s->first; l; l = l->next) {
        if (l->owner != owner || !is_variant(l, id) || *n == STREAMS_DESCRIBED)
            continue;
        llm_json_put_text(out, (*n)++ > 0 ? ", {\"conversation_id\": " : "{\"conversation_id\": ");
        llm_json_put_string(out, (ggl_str){l->id, strlen(l->id)});
        snprintf(text, sizeof text,
                 ", \"is_done\": %s, \"total_bytes\": %" PRIu64 ", \"started_at\": %" PRId64
                 ", \"completed_at\": %" PRId64 "}",
                 l->is_written ? "false" : "true", l->n_all, l->started, l->ended);
        llm_json_put_text(out, text);
    }
    ggl_os_mutex_unlock(&s->lock);
}

void streams_free(stream_table *s) {
    if (!s)
        return;
    while (s->first)
        forget(&s->first);
    ggl_os_mutex_destroy(&s->lock);
    ggl_free(s);
}
