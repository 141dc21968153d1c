/* The watcher. While a connection is suspended, the library does not look at its socket, and it may miss the end of a
 * client that sends a part of a request and goes at once (it waits for an edge of epoll that does not come). This
 * thread notices both. It also closes connections on which a request arrives, or a reply is read, byte by byte
 * without end; the library's timeout begins again at each byte. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_impl.h"

bool http_watch_is_gone(const http_reply *r) {
    const bool reads = strcmp(r->q.method, "GET") == 0 || strcmp(r->q.method, "HEAD") == 0;
    return r->connection->half_closed && !reads;
}

static void watch_for(const http_server *s, const http_connection *c, int how, uint32_t events) {
    struct epoll_event e = {.events = events | EPOLLONESHOT, .data.u64 = c->id};
    (void)epoll_ctl(s->watch, how, c->fd, &e); /* besides always EPOLLHUP and EPOLLERR */
}

/* The client has stopped sending (EPOLLRDHUP), or has gone altogether. */
static void on_change(http_server *s, http_connection *c, uint32_t events) {
    const bool is_over = events & (EPOLLHUP | EPOLLERR);
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
        watch_for(s, c, EPOLL_CTL_MOD, 0);
}

/* The connection is looked up by its number, because it may have been closed since the event. */
static void on_event(http_server *s, uint64_t id, uint32_t events) {
    ggl_os_mutex_lock(&s->lock);
    for (http_connection *c = s->connections; c; c = c->next)
        if (c->id == id) {
            on_change(s, c, events);
            break;
        }
    ggl_os_mutex_unlock(&s->lock);
}

static void close_due(http_server *s) {
    const int64_t now = http_now();
    for (http_connection *c = s->connections; c; c = c->next) {
        const int64_t due = c->due;
        if (due > 0 && due < now)
            (void)shutdown(c->fd, SHUT_RDWR);
    }
}

static void *watch(void *arg) {
    http_server *s = arg;
    struct epoll_event event[64];
    for (;;) {
        ggl_os_mutex_lock(&s->lock);
        close_due(s);
        const bool ends = s->ends;
        const int wait_ms = s->connections ? 1000 : -1;
        ggl_os_mutex_unlock(&s->lock);
        if (ends)
            return NULL;
        const int n = epoll_wait(s->watch, event, 64, wait_ms);
        for (int i = 0; i < n; i++) {
            uint64_t count;
            if (event[i].data.u64 == 0)
                (void)!read(s->wake, &count, sizeof count);
            else
                on_event(s, event[i].data.u64, event[i].events);
        }
    }
}

ggl_status http_watch_begin(http_server *s, ggl_error *err) {
    struct epoll_event e = {.events = EPOLLIN};
    s->watch = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->watch < 0 || s->wake < 0 || epoll_ctl(s->watch, EPOLL_CTL_ADD, s->wake, &e) != 0)
        return ggl_fail(err, GGL_IO, "no file descriptors are left: %s", strerror(errno));
    s->has_watcher = ggl_os_thread_start(&s->watcher, watch, s, 0);
    return s->has_watcher ? GGL_OK : ggl_fail(err, GGL_NOMEM, "no thread could be started");
}

void http_watch_wake(http_server *s) {
    const uint64_t one = 1;
    (void)!write(s->wake, &one, sizeof one);
}

/* Called after s->ends was set. */
void http_watch_end(http_server *s) {
    if (s->has_watcher) {
        http_watch_wake(s);
        ggl_os_thread_join(s->watcher);
    }
    if (s->watch >= 0)
        close(s->watch);
    if (s->wake >= 0)
        close(s->wake);
}

void http_watch_add(http_server *s, const http_connection *c) {
    watch_for(s, c, EPOLL_CTL_ADD, EPOLLRDHUP);
}

void http_watch_remove(http_server *s, const http_connection *c) {
    struct epoll_event e = {0};
    (void)epoll_ctl(s->watch, EPOLL_CTL_DEL, c->fd, &e);
}
