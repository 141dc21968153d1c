/* What the files http*.c share.
 *
 * Threads: libmicrohttpd's own (sockets), n_workers (the handler), the watcher (http_watch.c), and those that write
 * replies. A reply's connection is suspended while there is nothing to send. Locks: a thread that holds a reply's
 * lock takes no other of this layer; one that holds the server's may take a reply's. */
#ifndef LLM_SERVER_HTTP_IMPL_H
#define LLM_SERVER_HTTP_IMPL_H

#include <microhttpd.h>
#include <stdatomic.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/os_watch.h"
#include "http.h"
#include "memory.h"

/* A socket; it has one request after the other. */
typedef struct http_connection {
    struct http_connection *next, **at; /* in the server's list */
    uint64_t id;
    os_socket socket;
    char client[64];
    struct http_reply *reply; /* of the request that has begun and is not over; NULL: none */
    int64_t idle_since; /* ms of http_now(): when it was opened, or its last request was answered */
    bool is_busy;       /* it has a request that arrived whole */
    bool ends;          /* it was closed to make room for others */
    memory_hold held;
    /* When it is closed, in ms of http_now(), because a request arrives, or a reply is read, too slowly; 0: never. */
    atomic_llong due;
    atomic_bool half_closed; /* the client sends nothing any more */
} http_connection;

typedef struct http_pair {
    const char *name, *value;
} http_pair;

struct http_reply {
    http_request q; /* q.impl: this */
    http_server *server;
    /* Borrowed until the request is over; a handler may go on after that, so what handlers see is copied. */
    http_connection *connection;
    char client[64];
    int64_t began; /* ms */
    ggl_arena arena;
    http_pair *header, *parameter;
    size_t n_headers, n_parameters;

    /* The library's thread alone uses these. */
    bool begun_request; /* the headers were seen */
    bool handed;        /* the handler has it, or will */
    bool refused;       /* answered before the body arrived */
    bool closes;        /* the connection is not used again: what follows may not be a request */
    bool sent_now;      /* http_reply_send_now was called */
    const char *host;   /* of the URI, if it has one, else the header's; NULL: none */
    uint64_t n_arrived; /* bytes of the body, those that were dropped included */
    int64_t arrived_at; /* ms: the last of them */
    size_t n_announced; /* 0: not known, or none */
    char *body;
    size_t n_body, body_cap;
    memory_hold body_held;
    const char *origin; /* to be allowed by CORS; NULL: none */

    os_mutex lock;              /* of all below */
    int refs;                   /* the library's, and the handler's until http_reply_end */
    struct MHD_Connection *mhd; /* NULL: the request is over */
    bool suspended, begun, streams, ended, failed, queued;
    bool whole; /* the library has all of a stream */
    int status;
    const char *media_type;
    http_pair *extra; /* headers of the reply */
    size_t n_extra, extra_cap;
    char *out; /* bytes [out_at, out_n) are yet to be sent */
    size_t out_at, out_n, out_cap;
    memory_hold out_held;
    uint64_t n_sent;
    atomic_bool gone;

    void (*later)(void *ctx); /* http_reply_later; NULL: the handler is to be called */
    void *later_ctx;
    struct http_reply *next_job;          /* of the server's queue */
    struct http_reply *next_active, **at; /* in the server's list of requests that a handler has */
};

struct http_server {
    http_params p;
    struct MHD_Daemon *daemon;
    os_socket listens;
    int port;
    bool has_name; /* p.host is a Unix socket that this server has made */
    bool is_loopback;

    os_mutex lock; /* of all below */
    os_cond has_job, is_idle;
    http_reply *first_job, **last_job, *active;
    http_connection *connections;
    int n_connections;
    uint64_t next_id;
    int n_requests; /* begun and not over */
    bool drains, ends;
    atomic_bool leaves; /* see http_server_leave */
    os_thread *worker;
    int n_workers;

    os_watch *watch;
    os_thread watcher;
    bool has_watcher;
};

/* --- http_due.c --- */

/* Milliseconds of a monotonic clock. */
int64_t http_now(void);
/* Sets c->due: there is time for a request to arrive, or for n bytes of a reply to be read, from now on. */
void http_set_due(const http_server *s, http_connection *c, uint64_t n_bytes);

/* --- http_body.c --- */

/* Refuses a request whose body is too long, or does not fit beside others; n: its Content-Length, or 0. */
void http_body_announced(http_reply *r, uint64_t n);
/* True if a refused client sends so much that it gets its answer at once, and the connection is closed. */
bool http_body_is_far_too_long(const http_reply *r, uint64_t n);
/* Appends to the body, and sets *n to 0. What is not wanted is dropped; a client that goes on without end is cut off. */
enum MHD_Result http_body_take(http_reply *r, const char *data, size_t *n);

/* --- http_listen.c --- */

/* Sets listens, port, unix_path and is_loopback. GGL_IO: the address cannot be used. */
GGL_NODISCARD ggl_status http_listen(http_server *s, ggl_error *err);
/* Removes the name of a Unix socket, which no client finds from then on. */
void http_unlisten(http_server *s);

/* --- http_guard.c --- */

/* True if a browser's page of that origin ("https://example.org") may use the server: `origins` has it, or "*". */
bool http_origin_is_allowed(const http_params *p, const char *origin);
/* Checks Host, on a loopback address, and Origin (NULL: absent). Returns NULL, or a sentence that says why the
 * request is refused, which may be in buf. */
const char *http_guard(const http_server *s, const char *host, const char *origin, char *buf,
                       size_t size);
/* Returns what follows "http://" or "https://"; NULL: something else. */
const char *http_after_scheme(const char *uri);

/* --- http_check.c --- */

/* Checks the headers that say where a request ends, for whom it is, and how its body is coded; version: "HTTP/1.1".
 * Returns NULL, or a sentence that says why it is refused, and the status. */
const char *http_check(const http_reply *r, const char *version, int *status);

/* --- http_reply.c --- */

/* Returns the value of a name, in any case, among n pairs; NULL: it is not there. */
const char *http_find_pair(const http_pair *p, size_t n, const char *name);
/* NULL: out of memory. It has one reference. */
http_reply *http_reply_new(http_server *s, http_connection *c, struct MHD_Connection *mhd);
void http_reply_ref(http_reply *r);
void http_reply_unref(http_reply *r);
/* Puts it into the queue of the workers. Called with the server's lock. */
void http_reply_add_job(http_reply *r);
/* Starts sending: hands the reply to the library. Called on its thread. */
enum MHD_Result http_reply_queue(http_reply *r);
/* Sends a reply that was ended while the library still reads the request, and nothing after it: the client reads it
 * once it has sent all. What it sends until then is to be dropped. Called on the library's thread. */
void http_reply_send_now(http_reply *r);
/* Answers a request that the handler is not to see. */
void http_refuse(http_reply *r, int status, const char *sentence);
/* Ends the connection: nobody gets the reply. From any thread. */
void http_reply_abandon(http_reply *r);

/* --- http_watch.c --- */

/* Notices clients that go, and closes connections that are due. */
GGL_NODISCARD ggl_status http_watch_begin(http_server *s, ggl_error *err);
void http_watch_end(http_server *s);
/* True if the client of a request that is being answered has gone. Called with the server's lock. */
bool http_watch_is_gone(const http_reply *r);

#endif
