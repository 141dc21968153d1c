/* Requests: from the library's callbacks to the threads that call the handler. See http.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "http_impl.h"

enum {
    STATUS_GONE = 499,    /* in logs: the client went before its answer was complete */
    POOL_MORE = 16384,    /* what the library needs for a connection besides the headers */
    OWN_DESCRIPTORS = 8,  /* of the library, the watcher and the socket that listens */
    MOST_PARAMETERS = 100 /* of a query; the library takes 64 bytes of POOL_MORE for each */
};

/* --- requests --------------------------------------------------------------------------------- */

static const char *get_header(const http_request *q, const char *name) {
    const http_reply *r = q->impl;
    return http_find_pair(r->header, r->n_headers, name);
}

static const char *get_parameter(const http_request *q, const char *name) {
    const http_reply *r = q->impl;
    for (size_t i = 0; i < r->n_parameters; i++)
        if (strcmp(r->parameter[i].name, name) == 0)
            return r->parameter[i].value;
    return NULL;
}

typedef struct copying {
    http_reply *r;
    http_pair *pair;
    size_t n, n_most, size; /* size: bytes of names and values */
    bool failed;
} copying;

static enum MHD_Result copy_pair(void *cls, enum MHD_ValueKind kind, const char *name,
                                 const char *value) {
    copying *c = cls;
    (void)kind;
    value = value ? value : "";
    const size_t n_name = strlen(name), n_value = strlen(value);
    const http_pair p = {ggl_arena_strndup(&c->r->arena, name, n_name),
                         ggl_arena_strndup(&c->r->arena, value, n_value)};
    c->size += n_name + n_value + 4;
    c->failed |= !p.name || !p.value || c->n == c->n_most;
    if (c->failed)
        return MHD_NO;
    c->pair[c->n++] = p;
    return MHD_YES;
}

/* Copies headers or parameters: the library's end with the connection, which a handler may outlive. */
static bool copy_pairs(http_reply *r, enum MHD_ValueKind kind, http_pair **pair, size_t *n,
                       size_t *size) {
    const int most = MHD_get_connection_values(r->mhd, kind, NULL, NULL);
    copying c = {.r = r, .n_most = most > 0 ? (size_t)most : 0};
    if (c.n_most == 0)
        return true;
    c.pair = *pair = ggl_arena_alloc(&r->arena, c.n_most, sizeof *c.pair);
    if (!c.pair)
        return false;
    (void)MHD_get_connection_values(r->mhd, kind, copy_pair, &c);
    *n = c.n;
    *size += c.size;
    return !c.failed;
}

/* Refuses a request line that would take all of the library's memory for the connection: the library then neither
 * answers the request, nor ends it until its timeout (0.9.75). */
static void check_uri(http_reply *r, const char *uri) {
    const char *query = strchr(uri, '?');
    size_t n = query != NULL;
    while (query && (query = strchr(query, '&'))) {
        query++;
        n++;
    }
    if (n <= MOST_PARAMETERS && strlen(uri) <= r->server->p.max_header)
        return;
    char sentence[160];
    snprintf(sentence, sizeof sentence,
             "the request's path and query have %zu bytes and %zu parameters; at most %zu and %d "
             "are allowed",
             strlen(uri), n, r->server->p.max_header, (int)MOST_PARAMETERS);
    http_refuse(r, 414, sentence);
    http_reply_send_now(r);
}

/* Called at the request's first line. What it returns is the library's con_cls. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd) {
    http_server *s = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    http_connection *c = info ? info->socket_context : NULL;
    http_reply *r = c ? http_reply_new(s, c, mhd) : NULL;
    if (!r)
        return NULL;
    r->q.header = get_header;
    r->q.parameter = get_parameter;
    r->refused = strstr(uri, "%00") || strpbrk(uri, " \t"); /* the library ends the path at a NUL */
    c->reply = r;
    ggl_os_mutex_lock(&s->lock);
    s->n_requests++;
    ggl_os_mutex_unlock(&s->lock);
    check_uri(r, uri);
    return r;
}

/* A browser asks whether a page may send a request. */
static bool is_preflight(const http_reply *r) {
    return strcmp(r->q.method, "OPTIONS") == 0 && get_header(&r->q, "Origin") &&
           get_header(&r->q, "Access-Control-Request-Method");
}

/* The page may not, since no header allows it. The sentence is for people who look at the answer. */
static void deny_preflight(http_reply *r, const char *sentence) {
    r->refused = true;
    http_reply_ref(r);
    http_reply_begin(r, 200, "text/plain; charset=utf-8", false);
    http_reply_write(r, sentence, strlen(sentence));
    http_reply_end(r);
}

static void answer_preflight(http_reply *r) {
    const char *headers = get_header(&r->q, "Access-Control-Request-Headers");
    r->refused = true; /* the handler does not see it */
    http_reply_ref(r);
    http_reply_header(r, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    if (headers)
        http_reply_header(r, "Access-Control-Allow-Headers", headers);
    if (get_header(&r->q, "Access-Control-Request-Private-Network"))
        http_reply_header(r, "Access-Control-Allow-Private-Network", "true");
    http_reply_header(r, "Access-Control-Max-Age", "86400");
    http_reply_begin(r, 200, "", false);
    http_reply_end(r);
}

/* Refuses a request because of its headers, or else lets params.accepts decide. */
static void judge(http_reply *r, const char *version, size_t header_size, uint64_t n_announced) {
    http_server *s = r->server;
    const char *origin = get_header(&r->q, "Origin");
    char sentence[512];
    int status;
    const char *bad = http_check(r, version, &status);
    const char *why = http_guard(s, r->host, origin, sentence, sizeof sentence);
    r->closes = bad && (status == 400 || status == 501);
    ggl_os_mutex_lock(&s->lock);
    const bool drains = s->drains;
    ggl_os_mutex_unlock(&s->lock);
    if (origin && http_origin_is_allowed(&s->p, origin))
        r->origin = origin;
    if (bad)
        http_refuse(r, status, bad);
    else if (r->refused)
        http_refuse(r, 400, "the request's path has a NUL character or white space");
    else if (header_size > s->p.max_header)
        http_refuse(r, 431, "the request's headers are too long");
    else if (why && is_preflight(r) && !r->origin)
        deny_preflight(r, why);
    else if (why)
        http_refuse(r, 403, why);
    else if (is_preflight(r) && r->origin)
        answer_preflight(r);
    else if (drains)
        http_refuse(r, 503, "the server is shutting down");
    else
        http_body_announced(r, n_announced);
    if (!r->refused && s->p.accepts) {
        http_reply_ref(r);
        r->refused = !s->p.accepts(s->p.ctx, &r->q, r);
        if (!r->refused)
            http_reply_unref(r);
    }
}

/* Returns the path of "http://host/path", and sets the host, which counts instead of the header's. */
static const char *split_uri(http_reply *r, const char *uri) {
    const char *host = http_after_scheme(uri);
    r->host = get_header(&r->q, "Host");
    if (!host)
        return uri;
    const size_t n = strcspn(host, "/");
    r->host = ggl_arena_strndup(&r->arena, host, n);
    return host[n] ? host + n : "/";
}

/* The headers have arrived. A body that a refused client is about to send is read and dropped, because many clients read no
 * answer before they have sent all. */
static enum MHD_Result begin_request(http_reply *r, const char *uri, const char *method,
                                     const char *version) {
    size_t size = 0;
    if (r->sent_now)
        return MHD_NO;
    r->begun_request = true;
    r->q.method = ggl_arena_strndup(&r->arena, method, strlen(method));
    if (!r->q.method || !copy_pairs(r, MHD_HEADER_KIND, &r->header, &r->n_headers, &size) ||
        !copy_pairs(r, MHD_GET_ARGUMENT_KIND, &r->parameter, &r->n_parameters, &size))
        return MHD_NO;
    const char *path = split_uri(r, uri);
    r->q.path = ggl_arena_strndup(&r->arena, path, strlen(path));
    if (!r->q.path)
        return MHD_NO;
    const char *length = get_header(&r->q, "Content-Length");
    const uint64_t n_announced = length ? strtoull(length, NULL, 10) : 0;
    judge(r, version, size, n_announced);
    if (r->refused && (r->closes || get_header(&r->q, "Expect")))
        return http_reply_queue(r);
    if (r->refused && http_body_is_far_too_long(r, n_announced))
        http_reply_send_now(r);
    return MHD_YES;
}

/* The request is complete: a worker gets it, and the connection waits. */
static enum MHD_Result hand_over(http_reply *r) {
    http_server *s = r->server;
    r->handed = true;
    r->q.body = (ggl_str){r->body ? r->body : "", r->n_body};
    r->connection->due = 0;
    ggl_os_mutex_lock(&s->lock);
    if (s->ends) { /* no worker is left */
        ggl_os_mutex_unlock(&s->lock);
        r->handed = false;
        return MHD_NO;
    }
    ggl_os_mutex_lock(&r->lock);
    r->refs++;
    MHD_suspend_connection(r->mhd);
    r->suspended = true;
    ggl_os_mutex_unlock(&r->lock);
    r->connection->is_busy = true;
    r->at = &s->active;
    r->next_active = s->active;
    if (s->active)
        s->active->at = &r->next_active;
    s->active = r;
    http_reply_add_job(r);
    if (http_watch_is_gone(r))
        http_reply_abandon(r);
    ggl_os_mutex_unlock(&s->lock);
    return MHD_YES;
}

/* The connection was resumed: there is something to send, or nobody to send it to. */
static enum MHD_Result go_on(http_reply *r) {
    ggl_os_mutex_lock(&r->lock);
    const bool ready = r->begun && (r->streams || r->ended), gone = r->gone;
    ggl_os_mutex_unlock(&r->lock);
    return ready && !gone ? http_reply_queue(r) : MHD_NO;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *n, void **con_cls) {
    http_reply *r = *con_cls;
    (void)cls;
    (void)mhd;
    if (!r)
        return MHD_NO;
    if (!r->begun_request)
        return begin_request(r, url, method, version);
    if (*n > 0)
        return http_body_take(r, data, n);
    if (r->refused)
        return r->sent_now ? MHD_NO : http_reply_queue(r);
    return r->handed ? go_on(r) : hand_over(r);
}

/* Returns true if this server has closed the connection: it ends, its handler has failed in the middle of a reply, the client was too slow,
 * or others had to have room. Called with the reply's lock. */
static bool closed_by_server(const http_reply *r) {
    const http_connection *c = r->connection;
    const int64_t due = c->due;
    return r->server->ends || r->failed || c->ends || (due > 0 && due < http_now());
}

/* The reply was sent, or the connection is closed. */
static void end_request(http_reply *r, bool is_sent) {
    http_server *s = r->server;
    http_connection *c = r->connection;
    c->reply = NULL;
    ggl_os_mutex_lock(&r->lock);
    r->mhd = NULL;
    r->suspended = false;
    if (!is_sent)
        r->gone = true;
    /* whole: clients of OpenAI's API close after the last event, before the end of the transfer. */
    const bool has_status = r->queued && (is_sent || r->whole || closed_by_server(r));
    const int status = has_status ? r->status : STATUS_GONE;
    const uint64_t n_sent = r->n_sent;
    ggl_os_mutex_unlock(&r->lock);
    http_set_due(s, c, 0);
    if (s->p.done && (r->begun_request || r->queued))
        s->p.done(s->p.ctx, &r->q, status, n_sent, (double)(http_now() - r->began) * 1e-3);
    ggl_os_mutex_lock(&s->lock);
    if (r->handed) {
        *r->at = r->next_active;
        if (r->next_active)
            r->next_active->at = r->at;
    }
    c->is_busy = false;
    c->idle_since = http_now();
    if (--s->n_requests == 0)
        ggl_os_cond_broadcast(&s->is_idle);
    ggl_os_mutex_unlock(&s->lock);
    http_reply_unref(r);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                         enum MHD_RequestTerminationCode why) {
    http_reply *r = *con_cls;
    (void)cls;
    (void)mhd;
    if (r)
        end_request(r, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *con_cls = NULL;
}

/* --- connections ------------------------------------------------------------------------------ */

static void name_client(http_connection *c, const struct sockaddr *a) {
    snprintf(c->client, sizeof c->client, "unix");
    if (a && a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, c->client,
                  sizeof c->client);
    else if (a && a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, c->client,
                  sizeof c->client);
}

/* Closes the connection that has been without a whole request for longest, so that those which send nothing, or send
 * without end, keep nobody out. Called with the server's lock. */
static void make_room(http_server *s) {
    http_connection *oldest = NULL;
    for (http_connection *c = s->connections; c; c = c->next) /* the newest first */
        if (!c->is_busy && !c->ends && (!oldest || c->idle_since <= oldest->idle_since))
            oldest = c;
    if (!oldest)
        return;
    oldest->ends = true;
    ggl_os_socket_shut(oldest->socket, true);
}

static http_connection *connection_new(http_server *s, struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    http_connection *c = fd ? ggl_calloc(1, sizeof *c) : NULL;
    if (!c)
        return NULL; /* requests on it are refused */
    c->socket = (os_socket)fd->connect_fd;
    c->idle_since = http_now();
    c->held = (memory_hold){.of = s->p.memory, .use = MEMORY_CONNECTIONS};
    http_set_due(s, c, 0);
    name_client(c, address ? address->client_addr : NULL);
    ggl_os_mutex_lock(&s->lock);
    if (!memory_set(&c->held, s->p.max_header + POOL_MORE) ||
        (s->p.max_connections > 0 && s->n_connections >= s->p.max_connections))
        make_room(s);
    memory_force(&c->held, s->p.max_header + POOL_MORE);
    s->n_connections++;
    const bool is_first = !s->connections;
    c->id = ++s->next_id;
    c->at = &s->connections;
    c->next = s->connections;
    if (c->next)
        c->next->at = &c->next;
    s->connections = c;
    ggl_os_watch_add(s->watch, c->socket, c->id);
    ggl_os_mutex_unlock(&s->lock);
    if (is_first)
        ggl_os_watch_wake(s->watch); /* it closes what is due */
    return c;
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    http_server *s = cls;
    http_connection *c = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = connection_new(s, mhd);
        return;
    }
    if (!c)
        return;
    if (c->reply) /* the library does not call on_completed if it fails within the request's first line */
        end_request(c->reply, false);
    ggl_os_mutex_lock(&s->lock);
    ggl_os_watch_remove(s->watch, c->socket);
    s->n_connections--;
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    ggl_os_mutex_unlock(&s->lock);
    *context = NULL;
    memory_force(&c->held, 0);
    ggl_free(c);
}

/* --- workers ---------------------------------------------------------------------------------- */

/* Returns the next request; NULL: the server ends, and none is left. */
static http_reply *next_job(http_server *s) {
    ggl_os_mutex_lock(&s->lock);
    while (!s->first_job && !s->ends)
        ggl_os_cond_wait(&s->has_job, &s->lock);
    http_reply *r = s->first_job;
    if (r) {
        s->first_job = r->next_job;
        if (!s->first_job)
            s->last_job = &s->first_job;
    }
    ggl_os_mutex_unlock(&s->lock);
    return r;
}

static void *work(void *arg) {
    http_server *s = arg;
    http_reply *r;
    while ((r = next_job(s))) {
        if (r->later)
            r->later(r->later_ctx);
        else if (r->gone)
            http_reply_end(r);
        else
            s->p.handler(s->p.ctx, &r->q, r);
    }
    return NULL;
}

static ggl_status start_workers(http_server *s, ggl_error *err) {
    const int n = s->p.n_workers;
    s->worker = ggl_calloc((size_t)n, sizeof *s->worker);
    if (!s->worker)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (; s->n_workers < n; s->n_workers++)
        if (!ggl_os_thread_start(&s->worker[s->n_workers], work, s, 0))
            return ggl_fail(err, GGL_NOMEM, "no thread could be started");
    return GGL_OK;
}

/* --- the server ------------------------------------------------------------------------------- */

/* Connections beyond the limit: new ones, while old ones are closed. */
static int reserve(int max_connections) {
    const int n = 4 + max_connections / 8;
    return n < 64 ? n : 64;
}

int http_n_descriptors(int max_connections) {
    return max_connections + reserve(max_connections) + OWN_DESCRIPTORS;
}

static ggl_status start_library(http_server *s, ggl_error *err) {
    const http_params *p = &s->p;
    const int n_most =
        p->max_connections > 0 ? p->max_connections + reserve(p->max_connections) : 1 << 20;
    struct MHD_OptionItem option[] = {
        {MHD_OPTION_LISTEN_SOCKET, s->listens, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)(p->max_header + POOL_MORE), NULL},
        {MHD_OPTION_CONNECTION_LIMIT, n_most, NULL},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT, p->max_connections_per_client, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, p->timeout_s, NULL},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_uri, s},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, s},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, s},
        {MHD_OPTION_END, 0, NULL}};
    const unsigned how = MHD_is_feature_supported(MHD_FEATURE_EPOLL) == MHD_YES
                             ? MHD_USE_EPOLL_INTERNAL_THREAD
                             : MHD_USE_POLL_INTERNAL_THREAD;
    s->daemon = MHD_start_daemon(how | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_access, s,
                                 MHD_OPTION_ARRAY, option, MHD_OPTION_END);
    return s->daemon ? GGL_OK
                     : ggl_fail(err, GGL_IO,
                                "the HTTP library could not be started (too many open "
                                "files?)");
}

static void init(http_server *s, const http_params *p) {
    s->p = *p;
    s->listens = OS_NO_SOCKET;
    s->last_job = &s->first_job;
    if (!p->host)
        s->p.host = "127.0.0.1";
    if (p->n_workers <= 0)
        s->p.n_workers = 2;
    ggl_os_mutex_init(&s->lock);
    ggl_os_cond_init(&s->has_job);
    ggl_os_cond_init(&s->is_idle);
}

ggl_status http_server_new(http_server **out, const http_params *p, ggl_error *err) {
    *out = NULL;
    http_server *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    init(s, p);
    ggl_status st = http_listen(s, err);
    if (st == GGL_OK)
        st = http_watch_begin(s, err);
    if (st == GGL_OK)
        st = start_workers(s, err);
    if (st == GGL_OK)
        st = start_library(s, err);
    if (st == GGL_OK)
        *out = s;
    else
        http_server_free(s);
    return st;
}

int http_server_port(const http_server *s) {
    return s->port;
}

void http_server_leave(http_server *s) {
    s->leaves = true;
}

void http_server_drain(http_server *s) {
    http_server_leave(s);
    ggl_os_mutex_lock(&s->lock);
    const bool again = s->drains;
    s->drains = true;
    ggl_os_mutex_unlock(&s->lock);
    if (again) /* a socket that is shut cannot be shut once more, and would be closed too early */
        return;
    /* Clients that were not accepted yet are refused. Where it can be, the socket stays open until the library's thread
     * has ended: that thread still removes it from those it waits for. */
    if (s->listens >= 0 && (os_socket)MHD_quiesce_daemon(s->daemon) == s->listens)
        ggl_os_listen_end(&s->listens);
    http_unlisten(s);
}

bool http_server_wait(http_server *s, double seconds) {
    const int64_t until = ggl_os_clock() + (int64_t)(seconds * 1e9);
    ggl_os_mutex_lock(&s->lock);
    while (s->n_requests > 0 && ggl_os_cond_wait_until(&s->is_idle, &s->lock, until))
        ;
    const bool done = s->n_requests == 0;
    ggl_os_mutex_unlock(&s->lock);
    return done;
}

/* Resumes all connections, because the library does not end while one is suspended. */
static void abandon_all(http_server *s) {
    ggl_os_mutex_lock(&s->lock);
    for (http_reply *r = s->active; r; r = r->next_active)
        http_reply_abandon(r);
    ggl_os_mutex_unlock(&s->lock);
}

void http_server_free(http_server *s) {
    if (!s)
        return;
    if (s->daemon)
        http_server_drain(s);
    ggl_os_mutex_lock(&s->lock);
    s->ends = true;
    ggl_os_cond_broadcast(&s->has_job);
    ggl_os_mutex_unlock(&s->lock);
    for (int i = 0; i < s->n_workers; i++)
        ggl_os_thread_join(s->worker[i]);
    if (s->daemon) {
        abandon_all(s);
        MHD_stop_daemon(s->daemon);
    }
    http_watch_end(s);
    if (s->listens >= 0)
        ggl_os_socket_close(s->listens);
    http_unlisten(s);
    ggl_free(s->worker);
    ggl_os_cond_destroy(&s->is_idle);
    ggl_os_cond_destroy(&s->has_job);
    ggl_os_mutex_destroy(&s->lock);
    ggl_free(s);
}
