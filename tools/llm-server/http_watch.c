/* The watcher. While a connection is suspended, the library does not look at its socket, and it may miss the end of a
 * client that sends a part of a request and goes at once (it waits for an edge of epoll that does not come). This
 * thread notices both. It also closes connections on which a request arrives, or a reply is read, byte by byte
 * without end; the library's timeout begins again at each byte. */
#include <errno.h>
#include <string.h>

#include "http_impl.h"

bool http_watch_is_gone(const http_reply *r) {
    const bool reads = strcmp(r->q.method, "GET") == 0 || strcmp(r->q.method, "HEAD") == 0;
    return r->connection->half_closed && !reads;
}

/* The client has stopped sending, or has gone altogether. */
static void on_change(http_server *s, http_connection *c, bool is_over) {
    bool has_request = false;
    c->half_closed = true;
    for (http_reply *r = s->active; r; r = r->next_active)
        if (r->connection == c) {
            has_request = true;
            if (is_over || http_watch_is_gone(r))
                http_reply_abandon(r);
        }
    if (!has_request)
        http_set_due(s, c, 0);
    if (!is_over)
        ggl_os_watch_on(s->watch, c->socket, c->id);
}

/* The connection is looked up by its number, because it may have been closed since the event. */
static void on_event(http_server *s, os_watch_event e) {
    ggl_os_mutex_lock(&s->lock);
    for (http_connection *c = s->connections; c; c = c->next)
        if (c->id == e.id) {
            on_change(s, c, e.is_over);
            break;
        }
    ggl_os_mutex_unlock(&s->lock);
}

static void close_due(http_server *s) {
    const int64_t now = http_now();
    for (http_connection *c = s->connections; c; c = c->next) {
        const int64_t due = c->due;
        if (due > 0 && due < now)
            ggl_os_socket_shut(c->socket, true);
    }
}

static void *watch(void *arg) {
    http_server *s = arg;
    os_watch_event event[64];
    for (;;) {
        ggl_os_mutex_lock(&s->lock);
        close_due(s);
        const bool ends = s->ends;
        const int wait_ms = s->connections ? 1000 : -1;
        ggl_os_mutex_unlock(&s->lock);
        if (ends)
            return NULL;
        const int n = ggl_os_watch_wait(s->watch, event, 64, wait_ms);
        for (int i = 0; i < n; i++)
            on_event(s, event[i]);
    }
}

ggl_status http_watch_begin(http_server *s, ggl_error *err) {
    s->watch = ggl_os_watch_new();
    if (!s->watch)
        return ggl_fail(err, GGL_IO, "no file descriptors are left: %s", strerror(errno));
    s->has_watcher = ggl_os_thread_start(&s->watcher, watch, s, 0);
    return s->has_watcher ? GGL_OK : ggl_fail(err, GGL_NOMEM, "no thread could be started");
}

/* Called after s->ends was set. */
void http_watch_end(http_server *s) {
    if (s->has_watcher) {
        ggl_os_watch_wake(s->watch);
        ggl_os_thread_join(s->watcher);
    }
    ggl_os_watch_free(s->watch);
}
