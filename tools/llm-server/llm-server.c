/* llm-server: serves a model over HTTP. The model is loaded while the server already listens, and says so. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/amounts.h"
#include "common/placement_text.h"
#include "common/process.h"
#include "common/ranks.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_child.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "log.h"
#include "presets.h"
#include "server_impl.h"
#include "ggl/internal/os_process.h"

#define TOOL "llm-server"

enum {
    MOST_HEADER = 32768,
    MOST_WAITING = 4 << 20, /* bytes that a slow reader of a stream may be behind */
    FLUSH_SECONDS = 2       /* for the last errors to be sent */
};

static os_bell *news; /* wakes main */

static void wake_main(void) {
    ggl_os_bell_ring(news);
}

static void on_change(void *unused) {
    (void)unused;
    wake_main();
}

/* --- the log ---------------------------------------------------------------------------------- */

typedef struct program {
    server_options o;
    models *models;
    int argc;
    char **argv;
    http_server *http;
    FILE *log; /* NULL: no log */
} program;

static void on_done(void *ctx, const http_request *q, int status, uint64_t n_bytes,
                    double seconds) {
    const program *p = ctx;
    log_line(p->log, "%s %s %s %d %" PRIu64 " bytes %.3f s", q->client, q->method, q->path, status,
             n_bytes, seconds);
}

static int open_log(program *p) {
    if (p->o.verbose)
        p->log = stderr;
    if (!p->o.log_file)
        return -1;
    const char *rule = ggl_os_name_rule(p->o.log_file);
    if (rule)
        return tool_error(TOOL, 2, "--log-file %s: %s", p->o.log_file, rule);
    p->log = ggl_os_fopen(p->o.log_file, "a");
    return p->log ? -1 : tool_error(TOOL, 1, "--log-file %s: %s", p->o.log_file, strerror(errno));
}

/* --- the handlers of HTTP have the program as context ------------------------------------------- */

static bool on_accept(void *ctx, const http_request *q, http_reply *r) {
    return endpoints_accept(((program *)ctx)->models, q, r);
}

static void on_request(void *ctx, const http_request *q, http_reply *r) {
    endpoints_handle(((program *)ctx)->models, q, r);
}

static void on_refused(void *ctx, const http_request *q, http_reply *r, int status,
                       const char *sentence) {
    endpoints_refuse(((program *)ctx)->models, q, r, status, sentence);
}

static ggl_status open_http(program *p, ggl_error *err) {
    const server_options *o = &p->o;
    const http_params params = {.host = o->host,
                                .port = (int)o->port,
                                .max_body = (size_t)o->max_body << 20,
                                .max_header = MOST_HEADER,
                                .max_waiting = MOST_WAITING,
                                .max_connections = (int)o->max_connections,
                                .max_connections_per_client = (int)o->max_per_client,
                                .timeout_s = (int)o->timeout,
                                .memory = models_memory(p->models),
                                .n_workers = (int)o->n_http_threads,
                                .origins = o->origins.s,
                                .n_origins = o->origins.n,
                                .handler = on_request,
                                .accepts = on_accept,
                                .refuses = on_refused,
                                .ctx = p,
                                .done = p->log ? on_done : NULL};
    return http_server_new(&p->http, &params, err);
}

/* Raises the limit of open files, since each connection takes one. Where the system does not allow as many, fewer
 * connections are taken: without a descriptor for a new one, idle ones could not make room for it. Returns -1, or an exit
 * code. */
static int fit_connections(int64_t *n_connections) {
    enum { OWN_FILES = 24 }; /* the log, pipes, files of models */
    const int64_t wanted = *n_connections;
    const uint64_t most = ggl_os_allow_files((uint64_t)http_n_descriptors((int)wanted) + OWN_FILES);
    while (*n_connections > 0 &&
           (uint64_t)http_n_descriptors((int)*n_connections) + OWN_FILES > most)
        --*n_connections;
    if (*n_connections == 0)
        return tool_error(TOOL, 1,
                          "the limit of %" PRIu64
                          " open files (ulimit -n) leaves none for connections; at "
                          "least %d are needed",
                          most, http_n_descriptors(1) + OWN_FILES);
    if (*n_connections < wanted)
        tool_note(TOOL,
                  "at most %" PRId64 " connections, not %" PRId64
                  " (--max-connections): the limit of open files (ulimit -n) is %" PRIu64,
                  *n_connections, wanted, most);
    return -1;
}

/* --- running ---------------------------------------------------------------------------------- */

/* Names the models, as many as fit in a line. */
static void say_models(const models *t) {
    enum { MOST = 8 };
    const model_list *l = models_get_list(t);
    const size_t n = l->n;
    if (n == 0) {
        ggl_fprint(stderr, "  no models yet; GET /v1/models?reload=1 reads --models again\n");
        return;
    }
    ggl_fprint(stderr,
               n == 1 ? "  %zu model, loaded when a request names it:"
                      : "  %zu models, loaded when a request names them:",
               n);
    for (size_t i = 0; i < n && i < MOST; i++)
        ggl_fprint(stderr, "%s %s", i > 0 ? "," : "", model_name(l->at[i]));
    ggl_fprint(stderr, "%s\n", n > MOST ? ", .." : "");
}

static void say_where(const program *p) {
    const server_options *o = &p->o;
    if (ggl_os_is_absolute(o->host))
        ggl_fprint(stderr, TOOL ": unix:%s", o->host);
    else
        ggl_fprint(stderr, strchr(o->host, ':') ? TOOL ": http://[%s]:%d" : TOOL ": http://%s:%d",
                   o->host, http_server_port(p->http));
    server *s = models_is_single(p->models) ? model_peek(models_get_list(p->models)->at[0]) : NULL;
    if (!models_is_single(p->models)) {
        say_models(p->models);
    } else if (s) {
        const server_facts *f = server_get_facts(s);
        if (f->writes)
            ggl_fprint(stderr,
                       "  model %s, %" PRId64 " answer%s at once, context of %" PRId64
                       " tokens for %s\n",
                       f->model, f->n_parallel, llm_amount_s(f->n_parallel), f->n_ctx,
                       f->reads_text || f->sees_all ? "each" : "all");
        else if (f->hears)
            ggl_fprint(stderr, "  model %s, which writes down sounds, one at a time\n", f->model);
        else
            ggl_fprint(stderr, "  model %s, %s of texts of at most %" PRId64 " tokens\n", f->model,
                       f->n_score > 0 ? "scores" : "vectors", f->n_ctx);
    } else { /* --keep-alive was shorter than the way here */
        ggl_fprint(stderr, "  model %s\n", model_name(models_get_list(p->models)->at[0]));
    }
    const char *vain =
        s && !server_get_facts(s)->diffuses ? diffusion_options_given(&o->diffusion) : NULL;
    const bool has_chat = !s || server_get_facts(s)->has_chat || !server_get_facts(s)->writes;
    if (s)
        model_unpeek(s);
    if (vain)
        tool_note(TOOL, "%s has no effect: this model does not write by diffusion", vain);
    if (!has_chat)
        tool_note(TOOL, "the model has no chat template, so it only continues texts "
                        "(/v1/completions); --chat-template NAME|FILE gives it one");
}

/* Shows the page to who has asked for it, or started the program by a double click. */
static void open_page(const program *p) {
    const server_options *o = &p->o;
    const bool all = strcmp(o->host, "0.0.0.0") == 0 || strcmp(o->host, "::") == 0;
    char address[512];
    if (ggl_os_is_absolute(o->host) || o->no_page || !(o->opens_page || process_was_clicked()))
        return;
    snprintf(address, sizeof address,
             strchr(o->host, ':') && !all ? "http://[%s]:%d/" : "http://%s:%d/",
             all ? "127.0.0.1" : o->host, http_server_port(p->http));
    if (!ggl_os_open_page(address))
        tool_note(TOOL, "no browser could be started; the page is at %s", address);
}

static void warn_open(const program *p) {
    static const char *const local[] = {"127.", "localhost", "::1", "/"};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (strncmp(p->o.host, local[i], strlen(local[i])) == 0)
            return;
    if (p->o.n_api_keys == 0)
        tool_warning(
            TOOL,
            "other machines can use this server without a key; --api-key KEY makes it demand one");
}

static void on_ready(const program *p) {
    say_where(p);
    open_page(p);
}

/* Tells balancers that the server is about to end, and goes on until they have seen it. */
static void drain(program *p) {
    const double until = ggl_os_seconds() + (double)p->o.drain;
    models_drain(p->models);
    http_server_leave(p->http);
    tool_say(TOOL,
             "shutting down; for %" PRId64 " s (--drain) requests are still taken, and GET /ready "
             "says 503; a second signal ends at once",
             p->o.drain);
    for (double left; (left = until - ggl_os_seconds()) > 0;)
        ggl_os_bell_wait(news, (int)(left < 1 ? left * 1000 + 1 : 1000));
}

/* Serves until a signal comes, or the model cannot be loaded. Returns an exit code. */
static int serve(program *p) {
    bool was_ready = models_is_ready(p->models);
    if (was_ready)
        on_ready(p);
    while (!process_stopped) {
        ggl_os_bell_wait(news, -1);
        if (models_exit_code(p->models) >= 0 && !process_stopped)
            return models_exit_code(p->models);
        if (models_is_ready(p->models) && !was_ready)
            on_ready(p);
        was_ready = models_is_ready(p->models);
    }
    if (was_ready && p->o.drain > 0)
        drain(p);
    models_drain(p->models);
    http_server_drain(p->http);
    tool_say(TOOL,
             "shutting down; running answers have up to %" PRId64
             " s (--grace); a second signal ends at once",
             p->o.grace);
    if (was_ready)
        (void)http_server_wait(p->http, (double)p->o.grace);
    return 0;
}

static int make_bell(void) {
    news = ggl_os_bell_new();
    if (!news)
        return tool_error(TOOL, 1, "no pipe could be made: %s", strerror(errno));
    process_set_hooks(wake_main, NULL);
    return -1;
}

static int make_models(program *p) {
    ggl_error err = {0};
    p->models = models_new(&p->o, p->log, on_change, NULL);
    if (!p->models)
        return tool_error(TOOL, 1, "out of memory");
    if (p->o.models)
        return models_list(p->models, p->argc, p->argv);
    const model_card card = {.weight_type = "", .has = llm_senses_of(p->o.open.how.params.mmproj)};
    if (models_add(p->models, "", p->o.alias, NULL, NULL, &card, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    model_want(models_get_list(p->models)->at[0]);
    return -1;
}

static int run(program *p) {
    ggl_error err = {0};
    int code = open_log(p);
    if (code < 0)
        code = make_bell();
    if (code < 0)
        code = fit_connections(&p->o.max_connections);
    if (code >= 0)
        return code;
    process_wait_for_stop();
    ggl_os_hold_stops(true); /* in the threads that are started from here on: signals are main's */
    code = make_models(p);
    if (code >= 0)
        return code;
    ggl_status st = open_http(p, &err);
    if (st == GGL_OK) {
        warn_open(p);
        st = models_start(p->models, &err);
    }
    ggl_os_hold_stops(false);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    code = serve(p);
    models_stop(p->models);
    (void)http_server_wait(p->http, FLUSH_SECONDS);
    return code;
}

static void end(program *p) {
    http_server_free(p->http);
    if (p->models)
        models_stop(p->models);
    models_free(p->models);
    process_set_hooks(NULL, NULL);
    ggl_os_bell_free(news);
    if (p->log && p->log != stderr)
        fclose(p->log);
    server_options_fini(&p->o);
}

/* Downloads the models that were given by name, before anything listens. */
static int get_models(server_options *o) {
    process_wait_for_stop();
    const int code = open_options_get_models(TOOL, &o->open, !o->models);
    return code < 0 && (o->open.hub.path[0] || o->open.hub.path[1])
               ? server_options_check_paths(TOOL, o)
               : code;
}

int main(int argc, char **argv) {
    static program p;
    p.argc = argc;
    p.argv = argv;
    process_begin(&argc, &argv);
    int code = tool_join_job(TOOL);
    if (code < 0)
        code = server_options_read(&p.o, argc, argv);
    if (code < 0 && p.o.list_devices) {
        placement_list(stdout);
        code = 0;
    }
    if (code < 0)
        code = server_options_check_paths(TOOL, &p.o);
    if (code < 0)
        code = process_set_cpus(TOOL, p.o.open.cpu_mask);
    if (code < 0) {
        process_set_priority(TOOL, p.o.open.priority);
        code = get_models(&p.o);
        if (code < 0)
            code = run(&p);
    }
    end(&p);
    return tool_finish(TOOL, code);
}
