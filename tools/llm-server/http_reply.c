/* Replies: a buffer between those who write an answer and the library, which sends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_stream.h"
#include "ggl/internal/text.h"
#include "http_impl.h"

enum { SMALL = 1 << 16 }; /* bytes of a buffer that a stream may always have */

http_reply *http_reply_new(http_server *s, http_connection *c, struct MHD_Connection *mhd) {
    http_reply *r = ggl_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    ggl_os_mutex_init(&r->lock);
    r->server = s;
    r->connection = c;
    r->mhd = mhd;
    r->refs = 1;
    r->began = http_now();
    r->body_held = (memory_hold){.of = s->p.memory, .use = MEMORY_BODIES};
    r->out_held = (memory_hold){.of = s->p.memory, .use = MEMORY_ANSWERS};
    r->arrived_at = r->began;
    memcpy(r->client, c->client, sizeof r->client);
    r->q = (http_request){.method = "", .path = "", .client = r->client, .impl = r};
    return r;
}

void http_reply_ref(http_reply *r) {
    ggl_os_mutex_lock(&r->lock);
    r->refs++;
    ggl_os_mutex_unlock(&r->lock);
}

void http_reply_unref(http_reply *r) {
    ggl_os_mutex_lock(&r->lock);
    const int left = --r->refs;
    ggl_os_mutex_unlock(&r->lock);
    if (left > 0)
        return;
    ggl_os_mutex_destroy(&r->lock);
    ggl_arena_fini(&r->arena);
    ggl_free(r->extra);
    ggl_free(r->body);
    ggl_free(r->out);
    memory_force(&r->body_held, 0);
    memory_force(&r->out_held, 0);
    ggl_free(r);
}

/* Lets the library go on with the connection. Called with the lock held, as the next ones. */
static void wake(http_reply *r) {
    if (!r->suspended || !r->mhd)
        return;
    r->suspended = false;
    MHD_resume_connection(r->mhd);
}

/* The library notices that the socket is shut down, and closes it. */
static void abandon(http_reply *r) {
    r->gone = true;
    ggl_free(r->out);
    r->out = NULL;
    r->out_at = r->out_n = r->out_cap = 0;
    memory_force(&r->out_held, 0);
    if (r->mhd)
        ggl_os_socket_shut(r->connection->socket, true);
    wake(r);
}

void http_reply_abandon(http_reply *r) {
    ggl_os_mutex_lock(&r->lock);
    abandon(r);
    ggl_os_mutex_unlock(&r->lock);
}

/* Makes room for n bytes at the end; what was sent is dropped once it is half of the buffer. */
static bool make_room(http_reply *r, size_t n) {
    size_t need;
    if (r->out_at > r->out_n / 2) {
        memmove(r->out, r->out + r->out_at, r->out_n - r->out_at);
        r->out_n -= r->out_at;
        r->out_at = 0;
    }
    return ggl_size_add(r->out_n, n, &need) &&
           ggl_grow(&r->out, &r->out_cap, need > 0 ? need : 1, 1);
}

/* Enters the buffer into the account. Streams must fit, except for a small piece that waits alone:
 * so a client that reads is served however much others leave unread. Whole answers were bounded
 * before they began. */
static bool enter(http_reply *r) {
    if (r->streams && (r->out_n > r->out_at || r->out_cap > SMALL))
        return memory_set(&r->out_held, r->out_cap);
    memory_force(&r->out_held, r->out_cap);
    return true;
}

/* --- what handlers call ----------------------------------------------------------------------- */

void http_reply_header(http_reply *r, const char *name, const char *value) {
    ggl_os_mutex_lock(&r->lock);
    char *n = ggl_arena_strndup(&r->arena, name, strlen(name));
    char *v = ggl_arena_strndup(&r->arena, value, strlen(value));
    if (n && v && ggl_grow(&r->extra, &r->extra_cap, r->n_extra + 1, sizeof *r->extra))
        r->extra[r->n_extra++] = (http_pair){n, v};
    else
        r->failed = true;
    ggl_os_mutex_unlock(&r->lock);
}

const char *http_find_pair(const http_pair *p, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (ggl_case_compare(p[i].name, name) == 0)
            return p[i].value;
    return NULL;
}

const char *http_reply_find_header(http_reply *r, const char *name) {
    ggl_os_mutex_lock(&r->lock);
    const char *value = http_find_pair(r->extra, r->n_extra, name);
    ggl_os_mutex_unlock(&r->lock);
    return value;
}

bool http_reply_reserve(http_reply *r, size_t n) {
    ggl_os_mutex_lock(&r->lock);
    const bool ok = memory_set(&r->out_held, r->out_cap + n) && make_room(r, n);
    memory_force(&r->out_held, r->out_cap);
    ggl_os_mutex_unlock(&r->lock);
    return ok;
}

void http_reply_begin(http_reply *r, int status, const char *media_type, bool streams) {
    ggl_os_mutex_lock(&r->lock);
    if (!r->begun) {
        r->begun = true;
        r->status = status;
        r->streams = streams;
        r->media_type = ggl_arena_strndup(&r->arena, media_type, strlen(media_type));
        r->failed |= !r->media_type;
        if (streams)
            wake(r);
    }
    ggl_os_mutex_unlock(&r->lock);
}

void http_reply_write(http_reply *r, const char *bytes, size_t n) {
    ggl_os_mutex_lock(&r->lock);
    if (r->gone || r->ended || n == 0) {
        /* nobody gets it */
    } else if (r->streams && r->out_n - r->out_at > r->server->p.max_waiting) {
        abandon(r); /* the client reads too slowly */
    } else if (!make_room(r, n)) {
        r->failed = true;
    } else if (!enter(r)) {
        abandon(r);
    } else {
        memcpy(r->out + r->out_n, bytes, n);
        r->out_n += n;
        if (r->streams)
            wake(r);
    }
    ggl_os_mutex_unlock(&r->lock);
}

void http_reply_end(http_reply *r) {
    ggl_os_mutex_lock(&r->lock);
    if (!r->begun) {
        r->begun = true;
        r->status = 500;
    }
    if (r->failed && !r->queued) { /* out of memory before anything was sent */
        r->status = 500;
        r->n_extra = r->out_n = r->out_at = 0;
        r->failed = false;
    }
    r->ended = true;
    if (r->mhd)
        http_set_due(r->server, r->connection, r->out_n - r->out_at);
    wake(r);
    ggl_os_mutex_unlock(&r->lock);
    http_reply_unref(r);
}

void http_reply_add_job(http_reply *r) {
    http_server *s = r->server;
    r->next_job = NULL;
    *s->last_job = r;
    s->last_job = &r->next_job;
    ggl_os_cond_signal(&s->has_job);
}

void http_reply_later(http_reply *r, void (*fn)(void *ctx), void *ctx) {
    http_server *s = r->server;
    ggl_os_mutex_lock(&s->lock);
    const bool ends = s->ends; /* the workers may have ended */
    if (!ends) {
        r->later = fn;
        r->later_ctx = ctx;
        http_reply_add_job(r);
    }
    ggl_os_mutex_unlock(&s->lock);
    if (ends)
        fn(ctx);
}

bool http_reply_is_gone(http_reply *r) {
    return r->gone;
}

char *http_reply_take_body(http_reply *r) {
    char *body = r->body;
    r->body = NULL;
    memory_force(&r->body_held, 0);
    return body;
}

/* --- what the library calls ------------------------------------------------------------------- */

/* Gives the library the next bytes; without any, the connection waits for them. To end a connection, its socket is
 * shut down and a byte offered, which cannot be sent: the library then closes it at once, whereas after
 * MHD_CONTENT_READER_END_WITH_ERROR it forgets it until its timeout (0.9.75 with epoll). */
static ssize_t read_out(void *cls, uint64_t pos, char *buf, size_t max) {
    http_reply *r = cls;
    (void)pos;
    ggl_os_mutex_lock(&r->lock);
    size_t n = r->out_n - r->out_at;
    ssize_t result = 0;
    if (r->gone || (n == 0 && r->failed)) {
        ggl_os_socket_shut(r->connection->socket, true);
        *buf = '\n';
        result = 1;
    } else if (n > 0) {
        n = n < max ? n : max;
        memcpy(buf, r->out + r->out_at, n);
        r->out_at += n;
        r->n_sent += n;
        result = (ssize_t)n;
        if (r->out_at == r->out_n)
            r->out_at = r->out_n = 0;
        if (r->out_n == 0 && r->out_cap > SMALL) {
            ggl_free(r->out);
            r->out = NULL;
            r->out_cap = 0;
            memory_force(&r->out_held, 0);
        }
    } else if (r->ended) {
        r->whole = true;
        result = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        MHD_suspend_connection(r->mhd);
        r->suspended = true;
    }
    ggl_os_mutex_unlock(&r->lock);
    return result;
}

/* Calls put for all headers of the reply, until it returns false. */
static bool for_headers(const http_reply *r,
                        bool (*put)(void *to, const char *name, const char *value), void *to) {
    bool ok = true;
    if (r->media_type && *r->media_type)
        ok &= put(to, "Content-Type", r->media_type);
    if (r->closes || r->server->leaves)
        ok &= put(to, "Connection", "close");
    if (r->server->p.n_origins > 0)
        ok &= put(to, "Vary", "Origin");
    if (r->origin) {
        ok &= put(to, "Access-Control-Allow-Origin", r->origin);
        ok &= put(to, "Access-Control-Expose-Headers", "*");
    }
    for (size_t i = 0; i < r->n_extra; i++)
        ok &= put(to, r->extra[i].name, r->extra[i].value);
    return ok;
}

static bool put_response(void *to, const char *name, const char *value) {
    return MHD_add_response_header(to, name, value) == MHD_YES;
}

static bool put_line(void *to, const char *name, const char *value) {
    return fprintf(to, "%s: %s\r\n", name, value) > 0;
}

void http_reply_send_now(http_reply *r) {
    os_memory_stream text;
    const bool opened = ggl_os_memory_stream_open(&text);
    const os_socket to = r->connection->socket;
    r->sent_now = r->closes = true;
    ggl_os_mutex_lock(&r->lock);
    if (opened) {
        fprintf(text.to, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n", r->status,
                MHD_get_reason_phrase_for((unsigned)r->status), r->out_n);
        (void)for_headers(r, put_line, text.to);
        fprintf(text.to, "\r\n%.*s", (int)r->out_n, r->out_n > 0 ? r->out : "");
        if (ggl_os_memory_stream_close(&text))
            r->queued = ggl_os_socket_send(to, text.text, text.n);
    }
    r->n_sent = r->queued ? r->out_n : 0;
    ggl_os_mutex_unlock(&r->lock);
    free(text.text);
    ggl_os_socket_shut(to, !r->begun_request);
}

enum MHD_Result http_reply_queue(http_reply *r) {
    ggl_os_mutex_lock(&r->lock);
    const uint64_t n = r->ended && !r->streams ? r->out_n : MHD_SIZE_UNKNOWN;
    struct MHD_Response *m = MHD_create_response_from_callback(n, 32768, read_out, r, NULL);
    const bool ok = m && for_headers(r, put_response, m);
    r->queued = ok;
    ggl_os_mutex_unlock(&r->lock);
    const enum MHD_Result result = ok ? MHD_queue_response(r->mhd, (unsigned)r->status, m) : MHD_NO;
    if (m)
        MHD_destroy_response(m);
    return result;
}

void http_refuse(http_reply *r, int status, const char *sentence) {
    const http_params *p = &r->server->p;
    r->refused = true;
    http_reply_ref(r); /* http_reply_end drops it */
    if (p->refuses) {
        p->refuses(p->ctx, &r->q, r, status, sentence);
        return;
    }
    http_reply_begin(r, status, "text/plain; charset=utf-8", false);
    http_reply_write(r, sentence, strlen(sentence));
    http_reply_write(r, "\n", 1);
    http_reply_end(r);
}
