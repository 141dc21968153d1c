/* The server's side of HTTP: a thin layer over libmicrohttpd; the files http*.c alone know that library. A
 * handler gets a complete request and answers it through a reply, at once or later, from any thread.
 *
 *     static void on_request(void *ctx, const http_request *q, http_reply *r) {
 *         http_reply_begin(r, 200, "text/plain", false);
 *         http_reply_write(r, "hello\n", 6);
 *         http_reply_end(r);
 *     } */
#ifndef LLM_SERVER_HTTP_H
#define LLM_SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"
#include "ggl/str.h"
#include "memory.h"

typedef struct http_server http_server;
typedef struct http_reply http_reply;

/* A request; valid until http_reply_end. Names of headers and parameters: as in the RFCs, any case. */
typedef struct http_request {
    const char *method; /* "POST" */
    const char *path;   /* decoded, without the query: "/v1/models" */
    ggl_str body;
    const char *(*header)(const struct http_request *q, const char *name);    /* NULL: absent */
    const char *(*parameter)(const struct http_request *q, const char *name); /* of the query */
    const char *client; /* the address, for logs */
    void *impl;
} http_request;

/* Called on one of the n_workers threads. It must see to it that http_reply_end is called once. */
typedef void (*http_handler)(void *ctx, const http_request *q, http_reply *r);
/* Called when the headers of a request have arrived, before its body. It may answer the request itself, such as one
 * that it refuses: then it ends the reply and returns false. It must be quick: all connections wait for it. */
typedef bool (*http_accepts)(void *ctx, const http_request *q, http_reply *r);
/* Answers a request that this layer refuses, in the form that the caller's clients know; it ends the reply. The
 * status is 400, 403 (another web site), 413, 414, 415, 417, 431, 501 or 503. If it is 414, the request has
 * neither method nor path nor headers. */
typedef void (*http_refuses)(void *ctx, const http_request *q, http_reply *r, int status,
                             const char *sentence);

/* Descriptors that the layer opens for max_connections connections: some more than these, which are new ones while old
 * ones are closed, and its own. */
int http_n_descriptors(int max_connections);

typedef struct http_params {
    const char *host; /* default "127.0.0.1"; a path that begins with '/': a Unix socket */
    int port;         /* 0: any free one, see http_server_port */
    size_t max_body, max_header; /* bytes; beyond them 413 and 431 */
    size_t
        max_waiting; /* bytes of a reply that a slow client may leave unread; beyond them it is closed */
    /* 0: no limit of its own. Beyond max_connections, each new one closes the one that has been without a whole
     * request for longest. */
    int max_connections, max_connections_per_client;
    int timeout_s;  /* a connection on which nothing is sent or received */
    memory *memory; /* of all connections, bodies and replies; NULL: no limit */
    int n_workers;  /* threads that call the handler; default 2 */
    const char *const *
        origins; /* [n_origins]: for CORS; "localhost": this machine's, on any port; "*": any. None: no CORS headers. */
    size_t n_origins;
    http_handler handler;
    http_accepts accepts; /* NULL: all requests are accepted */
    http_refuses refuses; /* NULL: the sentence is sent as text */
    void *ctx;
    /* Called once a request is answered, or its client has gone, from any thread: for logs. status: 499 if
     * the client has gone before the answer was complete. NULL: none. */
    void (*done)(void *ctx, const http_request *q, int status, uint64_t n_bytes, double seconds);
} http_params;

/* Starts listening. Requests that another web site makes in a browser (Origin is not the request's own Host) get 403,
 * as do, on a loopback address, those for a host name that is neither an address nor localhost (which a site may have
 * resolved to this machine), unless `origins` has them. Requests whose end is ambiguous get 400 or 501, and their
 * connection is closed. libmicrohttpd 0.9.75 answers a Content-Length that is no number itself, with its header block
 * twice. What params points to is borrowed until http_server_free. GGL_IO: the address cannot be used (the message
 * says why). *out is NULL on failure. */
GGL_NODISCARD ggl_status http_server_new(http_server **out, const http_params *p, ggl_error *err);
int http_server_port(const http_server *s);
/* Lets each reply from now on end its connection, so that clients that keep connections open go elsewhere with their next
 * request. */
void http_server_leave(http_server *s);
/* No new connections and requests from now on: requests on open connections get 503. Means http_server_leave. */
void http_server_drain(http_server *s);
/* Waits until all requests are answered and sent. Returns false if some are not after these seconds. */
bool http_server_wait(http_server *s, double seconds);
/* Closes all connections and joins all threads. Replies that were not ended must be ended before. */
void http_server_free(http_server *s);

/* --- replies: these may be called from any thread, but not two at once for one reply -------------- */

/* Sets status and media type; `streams`: the length is not known yet and what is written is sent at once.
 * Without it, everything is sent at http_reply_end. */
void http_reply_begin(http_reply *r, int status, const char *media_type, bool streams);
/* Before http_reply_begin: adds a header. Both are copied. */
void http_reply_header(http_reply *r, const char *name, const char *value);
/* Returns the value of a header that http_reply_header has added, until http_reply_end; NULL: there is none. */
const char *http_reply_find_header(http_reply *r, const char *name);
/* Before http_reply_begin: makes room for n bytes, which the account of --request-memory must have. False: it has not, and
 * nothing has changed. */
bool http_reply_reserve(http_reply *r, size_t n);
void http_reply_write(http_reply *r, const char *bytes, size_t n); /* copied */
void http_reply_end(http_reply *r);                                /* frees r when all is sent */
/* Calls fn on one of the workers' threads, where a long answer delays nobody else's. Until then, nobody else
 * uses the reply; fn has to see to it that http_reply_end is called. */
void http_reply_later(http_reply *r, void (*fn)(void *ctx), void *ctx);
/* Gives the request's body (q->body) to the handler, which frees it with ggl_free, and enters its memory elsewhere.
 * NULL if none. */
char *http_reply_take_body(http_reply *r);
/* True if the client has gone, or does not read: nobody gets what is written from now on. A client that only
 * stops sending (a half-closed connection) has gone, too, unless the method is GET or HEAD: one cannot tell it
 * from a client that was ended. Cheap enough for every token. */
bool http_reply_is_gone(http_reply *r);

#endif
