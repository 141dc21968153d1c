/* HTTP requests, many at once, from one thread. serve_http_curl.c has them by libcurl;
 * serve_http_none.c is for builds without it.
 *
 *     serve_http *http;
 *     st = serve_http_new(&http, &(serve_http_options){.timeout = 600}, &err);
 *     st = serve_http_start(http, &(serve_call){.url = url, .end = on_end, .ctx = &me}, &err);
 *     while (st == GGL_OK && serve_http_n_running(http) > 0)
 *         st = serve_http_wait(http, 1000, &err);
 *     serve_http_free(http); */
#ifndef TOOLS_BENCH_SERVE_HTTP_H
#define TOOLS_BENCH_SERVE_HTTP_H

#include <stdbool.h>

#include "ggl/status.h"

typedef struct serve_http serve_http;

typedef struct serve_http_options {
    int64_t timeout;       /* seconds that a request may take */
    int64_t n_connections; /* kept open between requests */
} serve_http_options;

/* The end of a request. All texts are borrowed until the callback returns. */
typedef struct serve_end {
    int status;        /* of HTTP; 0: there was no answer */
    const char *error; /* the connection failed or broke off; NULL: the answer arrived whole */
    const char *body;  /* [n_body] the first 64 KiB of an answer whose status is not 200 */
    size_t n_body;
} serve_end;

typedef struct serve_call {
    const char *url;
    const char *key;  /* API key, sent as a bearer token; NULL: none */
    const char *body; /* [n_body] JSON, copied; NULL: a GET */
    size_t n_body;
    /* Takes the next bytes of an answer with status 200. Returning false ends the request, without
     * `error`. */
    bool (*receive)(void *ctx, const char *bytes, size_t n);
    /* Called once. It may start requests, but not wait. */
    void (*end)(void *ctx, const serve_end *e);
    void *ctx;
} serve_call;

/* GGL_UNSUPPORTED: this build has no HTTP; the message says how to get it. GGL_NOMEM. */
GGL_NODISCARD ggl_status serve_http_new(serve_http **out, const serve_http_options *o,
                                        ggl_error *err);
/* Starts a request; `end` follows from a later serve_http_wait. GGL_USAGE: not a URL; GGL_NOMEM.
 * After an error `end` is not called. */
GGL_NODISCARD ggl_status serve_http_start(serve_http *http, const serve_call *call, ggl_error *err);
/* Waits until something arrives, at most that many milliseconds, and calls the callbacks. GGL_IO,
 * GGL_NOMEM. */
GGL_NODISCARD ggl_status serve_http_wait(serve_http *http, int timeout_ms, ggl_error *err);
size_t serve_http_n_running(const serve_http *http);
/* Ends all requests, without calling `end`. NULL is fine. */
void serve_http_free(serve_http *http);

#endif
