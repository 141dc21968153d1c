/* HTTP by libcurl's multi interface: transfers run inside serve_http_wait. */
#include "serve_http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_process.h"
#include "serve_stream.h"

enum { MOST_BODY = 64 << 10, CONNECT_SECONDS = 30, SPARE_FILES = 64 };

typedef struct transfer {
    serve_call call;
    CURL *easy;
    struct curl_slist *header;
    serve_bytes body; /* of an answer with another status than 200 */
    char error[CURL_ERROR_SIZE];
    bool stopped; /* by `receive` */
    struct transfer *next, *before;
} transfer;

struct serve_http {
    CURLM *multi;
    serve_http_options o;
    transfer *first;
    size_t n_running;
};

ggl_status serve_http_new(serve_http **out, const serve_http_options *o, ggl_error *err) {
    serve_http *http = *out = calloc(1, sizeof *http);
    if (!http || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        *out = NULL;
        return ggl_fail(err, GGL_NOMEM, "libcurl cannot start");
    }
    http->o = *o;
    (void)ggl_os_allow_files((uint64_t)o->n_connections +
                             SPARE_FILES); /* as far as the system does */
    http->multi = curl_multi_init();
    if (!http->multi) {
        serve_http_free(http);
        *out = NULL;
        return ggl_fail(err, GGL_NOMEM, "libcurl cannot start");
    }
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)o->n_connections);
    curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    return GGL_OK;
}

static void transfer_free(serve_http *http, transfer *t) {
    if (t->easy && http->multi)
        curl_multi_remove_handle(http->multi, t->easy);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->header);
    serve_bytes_fini(&t->body);
    free(t);
}

static void transfer_unlink(serve_http *http, transfer *t) {
    *(t->before ? &t->before->next : &http->first) = t->next;
    if (t->next)
        t->next->before = t->before;
    http->n_running--;
}

void serve_http_free(serve_http *http) {
    if (!http)
        return;
    while (http->first) {
        transfer *t = http->first;
        transfer_unlink(http, t);
        transfer_free(http, t);
    }
    curl_multi_cleanup(http->multi);
    curl_global_cleanup();
    free(http);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx) {
    transfer *t = ctx;
    long status = 0;
    n *= size;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200 && t->call.receive) {
        t->stopped = !t->call.receive(t->call.ctx, bytes, n);
        return t->stopped ? 0 : n;
    }
    size_t room = MOST_BODY - t->body.n, take = n < room ? n : room;
    return serve_bytes_add(&t->body, bytes, take, MOST_BODY, NULL) == GGL_OK ? n : 0;
}

/* Adds a header line; false: out of memory. */
static bool add_header(transfer *t, const char *line) {
    struct curl_slist *grown = curl_slist_append(t->header, line);
    t->header = grown ? grown : t->header;
    return grown != NULL;
}

static bool add_key(transfer *t, const char *key) {
    const char *name = "Authorization: Bearer ";
    size_t size = strlen(name) + strlen(key) + 1;
    char *line = malloc(size);
    if (line)
        snprintf(line, size, "%s%s", name, key);
    bool ok = line && add_header(t, line);
    free(line);
    return ok;
}

/* Sets what is sent and where. */
static bool set_request(transfer *t) {
    const serve_call *c = &t->call;
    bool ok = curl_easy_setopt(t->easy, CURLOPT_URL, c->url) == CURLE_OK;
    if (c->body) {
        curl_off_t n = (curl_off_t)c->n_body;
        ok = ok && curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, n) == CURLE_OK &&
             curl_easy_setopt(t->easy, CURLOPT_COPYPOSTFIELDS, c->body) == CURLE_OK;
        /* without the second line curl waits for a "100 Continue" before a long body */
        ok = ok && add_header(t, "Content-Type: application/json") && add_header(t, "Expect:");
    }
    ok = ok && (!c->key || add_key(t, c->key));
    return ok && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->header) == CURLE_OK;
}

/* Sets how it is sent. Proxies of the environment are not used, because they would be measured. */
static void set_manner(serve_http *http, transfer *t) {
    CURL *e = t->easy;
    curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->error);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_TIMEOUT, (long)http->o.timeout);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

ggl_status serve_http_start(serve_http *http, const serve_call *call, ggl_error *err) {
    transfer *t = calloc(1, sizeof *t);
    if (!t)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    t->call = *call;
    t->easy = curl_easy_init();
    bool ok = t->easy && set_request(t);
    if (ok)
        set_manner(http, t);
    if (!ok || curl_multi_add_handle(http->multi, t->easy) != CURLM_OK) {
        transfer_free(http, t);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    t->next = http->first;
    if (t->next)
        t->next->before = t;
    http->first = t;
    http->n_running++;
    return GGL_OK;
}

static void end_transfer(serve_http *http, transfer *t, CURLcode code) {
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    const char *error = *t->error ? t->error : curl_easy_strerror(code);
    const serve_end e = {.status = (int)status,
                         .error = code == CURLE_OK || t->stopped ? NULL : error,
                         .body = t->body.s ? t->body.s : "",
                         .n_body = t->body.n};
    transfer_unlink(http, t);
    if (t->call.end)
        t->call.end(t->call.ctx, &e);
    transfer_free(http, t);
}

static ggl_status multi_status(CURLMcode code, ggl_error *err) {
    return code == CURLM_OK ? GGL_OK : ggl_fail(err, GGL_IO, "%s", curl_multi_strerror(code));
}

ggl_status serve_http_wait(serve_http *http, int timeout_ms, ggl_error *err) {
    int n_active = 0, n_left = 0;
    ggl_status st = multi_status(curl_multi_perform(http->multi, &n_active), err);
    if (st == GGL_OK && (size_t)n_active == http->n_running)
        st = multi_status(curl_multi_poll(http->multi, NULL, 0, timeout_ms, NULL), err);
    if (st == GGL_OK)
        st = multi_status(curl_multi_perform(http->multi, &n_active), err);
    for (CURLMsg *m; st == GGL_OK && (m = curl_multi_info_read(http->multi, &n_left)) != NULL;) {
        transfer *t = NULL;
        CURLcode code = m->data.result; /* the message is gone when its handle is */
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        end_transfer(http, t, code);
    }
    return st;
}

size_t serve_http_n_running(const serve_http *http) {
    return http->n_running;
}
