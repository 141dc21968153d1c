/* The HTTP layer without a model, for http_layer.py: a server whose handlers do what a test wants.
 *
 *     http_server [--host H] [--max-body N] ..      prints "port N" when it listens; reads lines from stdin:
 *     open       prints the number of open descriptors, of requests that have begun, and of replies that were not ended
 *     drain      no new requests
 *     end        waits for all answers, and ends */
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/args.h"
#include "llm-server/http.h"
#include "pthread.h"

static atomic_int n_handled, n_open, n_gone, n_done;
static memory *account;

static void say(http_reply *r, int status, const char *text) {
    http_reply_begin(r, status, "text/plain", false);
    http_reply_write(r, text, strlen(text));
    http_reply_end(r);
}

static void nap(int ms) {
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static int number(const http_request *q, const char *name, int otherwise) {
    const char *s = q->parameter(q, name);
    return s ? atoi(s) : otherwise;
}

/* What a stream writes on a thread of its own. */
typedef struct stream {
    http_reply *r;
    int n, size, ms;
} stream;

static void *write_stream(void *arg) {
    stream *t = arg;
    char *line = malloc((size_t)t->size + 32);
    for (int i = 0; line && i < t->n && !http_reply_is_gone(t->r); i++) {
        int n = snprintf(line, 32, "%d ", i);
        memset(line + n, 'x', (size_t)t->size);
        line[n + t->size] = '\n';
        http_reply_write(t->r, line, (size_t)(n + t->size + 1));
        if (t->ms > 0)
            nap(t->ms);
    }
    free(line);
    if (http_reply_is_gone(t->r))
        n_gone++;
    http_reply_end(t->r);
    n_open--;
    free(t);
    return NULL;
}

static void start_stream(const http_request *q, http_reply *r) {
    stream *t = malloc(sizeof *t);
    pthread_t thread;
    *t = (stream){r, number(q, "n", 10), number(q, "size", 1), number(q, "ms", 0)};
    http_reply_begin(r, 200, "text/plain", true);
    if (pthread_create(&thread, NULL, write_stream, t) != 0)
        abort();
    pthread_detach(thread);
}

/* Answers when the client has gone. */
static void *wait_for_end(void *arg) {
    http_reply *r = arg;
    while (!http_reply_is_gone(r))
        nap(1);
    n_gone++;
    say(r, 200, "nobody reads this");
    n_open--;
    return NULL;
}

static void hang(http_reply *r) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_end, r) != 0)
        abort();
    pthread_detach(thread);
}

/* A long answer. */
typedef struct big {
    http_reply *r;
    int n;
} big;

static void write_big(void *ctx) {
    big *b = ctx;
    http_reply_begin(b->r, 200, "text/plain", false);
    for (int i = 0; i < b->n; i++)
        http_reply_write(b->r, "0123456789abcde\n", 16);
    http_reply_end(b->r);
    n_open--;
    free(b);
}

static void *write_big_later(void *arg) {
    big *b = arg;
    http_reply_later(b->r, write_big, b);
    return NULL;
}

static void send_big(const http_request *q, http_reply *r) {
    big *b = malloc(sizeof *b);
    pthread_t thread;
    *b = (big){r, number(q, "n", 1000)};
    if (!number(q, "later", 0)) {
        write_big(b);
        return;
    }
    if (pthread_create(&thread, NULL, write_big_later, b) != 0)
        abort();
    pthread_detach(thread);
}

static void handle(void *ctx, const http_request *q, http_reply *r) {
    (void)ctx;
    n_handled++;
    n_open++;
    if (strcmp(q->path, "/stream") == 0) {
        start_stream(q, r);
    } else if (strcmp(q->path, "/hang") == 0) {
        hang(r);
    } else if (strcmp(q->path, "/big") == 0) {
        send_big(q, r);
    } else if (strcmp(q->path, "/client") == 0) { /* its connection may have ended before */
        nap(number(q, "ms", 0));
        say(r, 200, q->client);
        n_open--;
    } else if (strcmp(q->path, "/echo") == 0) {
        const char *type = q->header(q, "content-type");
        http_reply_header(r, "X-Type", type ? type : "none");
        http_reply_header(r, "X-Method", q->method);
        http_reply_begin(r, 200, "application/octet-stream", false);
        http_reply_write(r, q->body.s, q->body.n);
        http_reply_end(r);
        n_open--;
    } else {
        nap(number(q, "ms", 0));
        say(r, 200, q->path);
        n_open--;
    }
}

static bool accept(void *ctx, const http_request *q, http_reply *r) {
    (void)ctx;
    if (strcmp(q->path, "/refused") != 0)
        return true;
    say(r, 401, "no");
    return false;
}

static void done(void *ctx, const http_request *q, int status, uint64_t n_bytes, double seconds) {
    (void)ctx;
    (void)q;
    (void)status;
    (void)n_bytes;
    (void)seconds;
    n_done++;
}

static int descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int serve(const http_params *p) {
    http_server *s = NULL;
    ggl_error err = {0};
    char line[64];
    if (http_server_new(&s, p, &err) != GGL_OK)
        return tool_error("http_server", 1, "%s", err.msg);
    printf("port %d\n", http_server_port(s));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0) {
        if (strcmp(line, "drain\n") == 0)
            http_server_drain(s);
        printf("%d %d %d %d %d %zu %zu\n", descriptors(), n_handled, n_open, n_gone, n_done,
               memory_held(account, MEMORY_BODIES), memory_held(account, MEMORY_ANSWERS));
        fflush(stdout);
    }
    http_server_drain(s);
    const bool all = http_server_wait(s, 10);
    while (n_open > 0)
        nap(1);
    http_server_free(s);
    printf("%s\n", all ? "ended" : "left");
    return 0;
}

int main(int argc, char **argv) {
    int64_t port = 0, max_body = 1 << 20, max_waiting = 1 << 20, timeout = 30, limit = 1000,
            of_one = 0, most_memory = 0;
    const char *host = NULL;
    arg_list origins = {0};
    const arg_option options[] = {{"--host", ARG_STRING, &host, .value = "X"},
                                  {"--port", ARG_INT, &port, .value = "X"},
                                  {"--max-body", ARG_INT, &max_body, .value = "X"},
                                  {"--max-waiting", ARG_INT, &max_waiting, .value = "X"},
                                  {"--timeout", ARG_INT, &timeout, .value = "X"},
                                  {"--connections", ARG_INT, &limit, .value = "X"},
                                  {"--per-client", ARG_INT, &of_one, .value = "X"},
                                  {"--memory", ARG_INT, &most_memory, .value = "X"},
                                  {"--cors", ARG_LIST, &origins, .value = "X"},
                                  {0}};
    const args_spec spec = {"http_server", "[options]", "For tests.",    options,
                            NULL,          NULL,        .examples = NULL};
    int code = args_parse(&spec, argc, argv);
    account = most_memory > 0 ? memory_new((size_t)most_memory) : NULL;
    const http_params p = {.host = host,
                           .port = (int)port,
                           .max_body = (size_t)max_body,
                           .max_header = 16384,
                           .max_waiting = (size_t)max_waiting,
                           .max_connections = (int)limit,
                           .max_connections_per_client = (int)of_one,
                           .timeout_s = (int)timeout,
                           .memory = account,
                           .origins = origins.s,
                           .n_origins = origins.n,
                           .handler = handle,
                           .accepts = accept,
                           .done = done};
    if (code < 0)
        code = serve(&p);
    for (int i = 0; i < N_MEMORY_USES; i++)
        if (memory_held(account, (memory_use)i) > 0)
            code = tool_error("http_server", 1, "memory is held at the end");
    memory_free(account);
    args_list_fini(&origins);
    return code;
}
