/* llm-bench serve: measures servers that speak OpenAI's API under load. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../models/common/json.h"
#include "common/progress.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/show.h"
#include "serve_options.h"
#include "serve_plot.h"
#include "serve_report.h"
#include "serve_text.h"
#include "tool.h"

#define TOOL "llm-bench serve"

enum { MOST_MODELS = 16 << 20, WAIT_MS = 1000 };

typedef struct bench {
    serve_options o;
    serve_http *http;
    serve_server server[SERVE_MAX_SERVERS];
    double per_word, fixed; /* tokens of a word, and of what surrounds a prompt */
    serve_row *row;         /* [n_rows] one for each server and test */
    size_t n_rows, cap_rows;
    size_t n_tests;
    bool failed; /* a request has failed */
    serve_report report;
} bench;

/* --- the servers ------------------------------------------------------------------------------ */

typedef struct listing { /* the answer of /v1/models */
    serve_bytes bytes;
    ggl_error err;
    char failure[256]; /* "": none */
} listing;

static bool on_listing(void *ctx, const char *bytes, size_t n) {
    listing *l = ctx;
    return serve_bytes_add(&l->bytes, bytes, n, MOST_MODELS, &l->err) == GGL_OK;
}

static void on_listing_end(void *ctx, const serve_end *e) {
    listing *l = ctx;
    char said[160];
    if (e->status == 0)
        snprintf(l->failure, sizeof l->failure, "%s", e->error ? e->error : "no answer");
    else if (e->status != 200)
        snprintf(l->failure, sizeof l->failure, "HTTP %d: %s%s", e->status,
                 serve_error_text(e->body, e->n_body, said, sizeof said),
                 e->status == 401 ? " (--api-key)" : "");
    else if (e->error)
        snprintf(l->failure, sizeof l->failure, "%s", e->error);
}

/* Sets the model to the first that the server lists. */
static ggl_status choose_model(serve_server *s, const listing *l, ggl_error *err) {
    llm_json *doc;
    ggl_status st =
        llm_json_parse(&doc, l->bytes.s ? l->bytes.s : "", l->bytes.n, "/v1/models", err);
    if (st != GGL_OK)
        return st;
    const json_value *data = llm_json_get_kind(&doc->root, "data", JSON_ARRAY);
    const json_value *id =
        data && data->n > 0 ? llm_json_get_kind(&data->item[0], "id", JSON_STRING) : NULL;
    if (id && id->n < sizeof s->model)
        memcpy(s->model, id->s, id->n);
    else
        st = ggl_fail(err, GGL_FORMAT, "/v1/models lists no model; name one with --model");
    llm_json_free(doc);
    return st;
}

static ggl_status find_model(bench *b, serve_server *s, ggl_error *err) {
    char url[sizeof s->base + 16];
    listing l = {.failure = ""};
    snprintf(url, sizeof url, "%s/models", s->base);
    const serve_call call = {
        .url = url, .key = s->key, .receive = on_listing, .end = on_listing_end, .ctx = &l};
    ggl_status st = serve_http_start(b->http, &call, err);
    while (st == GGL_OK && serve_http_n_running(b->http) > 0)
        st = serve_http_wait(b->http, WAIT_MS, err);
    if (st == GGL_OK && l.err.status != GGL_OK)
        st = ggl_fail(err, l.err.status, "/v1/models: %s", l.err.msg);
    else if (st == GGL_OK && *l.failure)
        st = ggl_fail(err, GGL_IO, "/v1/models: %s", l.failure);
    if (st == GGL_OK)
        st = choose_model(s, &l, err);
    serve_bytes_fini(&l.bytes);
    return st;
}

static ggl_status set_server(bench *b, size_t i, ggl_error *err) {
    serve_server *s = &b->server[i];
    const char *url = b->o.url[i];
    size_t n = strlen(url);
    *s = (serve_server){.url = url, .name = b->o.name[i], .key = b->o.key[i]};
    while (n > 0 && url[n - 1] == '/')
        n--;
    bool has = n >= 3 && memcmp(url + n - 3, "/v1", 3) == 0;
    snprintf(s->base, sizeof s->base, "%.*s%s", (int)n, url, has ? "" : "/v1");
    if (!b->o.model[i])
        return find_model(b, s, err);
    snprintf(s->model, sizeof s->model, "%s", b->o.model[i]);
    return GGL_OK;
}

/* --- tokens of words -------------------------------------------------------------------------- */

enum { FEW_WORDS = 8, MANY_WORDS = 64 };

/* A load without lengths and size. */
static serve_load plain_load(const bench *b) {
    return (serve_load){.chat = b->o.chat,
                        .ignore_eos = !b->o.no_ignore_eos,
                        .temperature = b->o.temperature,
                        .field = b->o.field.s,
                        .n_fields = b->o.field.n,
                        .n_clients = 1,
                        .n_talks = 1,
                        .n_turns = 1,
                        .n_words = FEW_WORDS,
                        .n_answer = 1};
}

/* Sends a prompt of n words; sets *tokens to its number of tokens, negative if the server does not
 * report it. */
static ggl_status count_tokens(bench *b, size_t i, size_t n, int64_t *tokens, ggl_error *err) {
    serve_log log = {0};
    serve_load load = plain_load(b);
    load.n_words = n;
    load.seed = serve_seed((uint64_t)b->o.seed, n, UINT64_MAX, i);
    ggl_status st = serve_load_run(b->http, &b->server[i], &load, &log, err);
    if (st == GGL_OK && log.n_failed > 0)
        st = ggl_fail(err, GGL_IO, "%s%s", log.failure[0].text,
                      load.ignore_eos && strstr(log.failure[0].text, "ignore_eos")
                          ? "; see --no-ignore-eos"
                          : "");
    *tokens = st == GGL_OK ? log.sample[0].prompt_tokens : -1;
    serve_log_fini(&log);
    return st;
}

/* Asks for answers to two prompts, which also warms the server up. The first server's numbers
 * hold for both, because both get the same texts. */
static ggl_status ask_tokens(bench *b, size_t i, ggl_error *err) {
    int64_t few = -1, many = -1;
    ggl_status st = count_tokens(b, i, FEW_WORDS, &few, err);
    if (st == GGL_OK)
        st = count_tokens(b, i, MANY_WORDS, &many, err);
    if (st != GGL_OK || b->o.words || i > 0)
        return st;
    if (few < 0 || many <= few) {
        tool_note(TOOL,
                  "%s reports no usage; prompts have as many words as tokens "
                  "were asked for",
                  b->server[i].url);
        return GGL_OK;
    }
    b->per_word = (double)(many - few) / (MANY_WORDS - FEW_WORDS);
    b->fixed = fmax(0, (double)few - FEW_WORDS * b->per_word);
    return GGL_OK;
}

/* Returns how many words make about `tokens` tokens, with the fixed ones: at least one. */
static size_t words_of(const bench *b, int64_t tokens, double fixed) {
    return (size_t)fmax(1, round(((double)tokens - fixed) / b->per_word));
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Runs a load on each server in turns; log: [n_servers]. */
static ggl_status run_rounds(bench *b, serve_load *load, serve_log *const *log, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int64_t k = 0; k < b->o.rounds && st == GGL_OK; k++) {
        load->seed = serve_seed((uint64_t)b->o.seed, b->n_tests, (uint64_t)k, 0);
        for (size_t i = 0; i < b->o.n_servers && st == GGL_OK; i++) {
            char size[32];
            if (b->o.progress)
                ggl_fprint(stderr, TOOL ": load %s, round %" PRId64 " of %" PRId64 ", %s\n",
                           serve_load_text(load, size, sizeof size), k + 1, b->o.rounds,
                           b->server[i].url);
            progress_say("round %" PRId64 " of %" PRId64 ", %s clients or per second, %s", k + 1,
                         b->o.rounds, serve_load_text(load, size, sizeof size), b->server[i].url);
            st = serve_load_run(b->http, &b->server[i], load, log[i], err);
        }
    }
    return st;
}

/* Adds the rows of a test, and prints them. */
static ggl_status take_rows(bench *b, const serve_row *test, serve_log *const *log,
                            ggl_error *err) {
    size_t first = b->n_rows;
    if (!ggl_grow(&b->row, &b->cap_rows, first + b->o.n_servers, sizeof *b->row))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < b->o.n_servers; i++) {
        serve_row *row = &b->row[b->n_rows];
        *row = *test;
        row->server = &b->server[i];
        if (!serve_row_take(row, log[i]))
            return ggl_fail(err, GGL_NOMEM, "out of memory");
        b->n_rows++;
        b->failed = b->failed || row->n_failed > 0;
    }
    tool_begin_line();
    serve_report_rows(&b->report, &b->row[first]);
    serve_report_notes(&b->row[first], b->o.n_servers, log);
    return GGL_OK;
}

static ggl_status run_test(bench *b, int64_t n_prompt, int64_t n_answer, size_t load,
                           ggl_error *err) {
    const serve_options *o = &b->o;
    serve_row test = {
        .load = plain_load(b), .n_prompt = n_prompt, .n_shared = o->shared, .seed = o->seed};
    serve_load *l = &test.load;
    l->n_clients = o->n_rates > 0 ? 0 : (size_t)o->clients.v[load];
    l->rate = o->n_rates > 0 ? o->rate[load] : 0;
    l->n_talks = (size_t)o->n_requests;
    l->n_turns = (size_t)o->turns;
    l->n_words = words_of(b, n_prompt, b->fixed);
    l->n_shared = o->shared > 0 ? words_of(b, o->shared, 0) : 0;
    l->n_answer = n_answer;
    serve_log logs[SERVE_MAX_SERVERS] = {{0}}, *log[] = {&logs[0], &logs[1]};
    ggl_status st = run_rounds(b, l, log, err);
    if (st == GGL_OK)
        st = take_rows(b, &test, log, err);
    for (size_t i = 0; i < SERVE_MAX_SERVERS; i++)
        serve_log_fini(log[i]);
    b->n_tests++;
    return st;
}

static ggl_status run_tests(bench *b, ggl_error *err) {
    const serve_options *o = &b->o;
    size_t n_loads = o->n_rates > 0 ? o->n_rates : o->clients.n;
    ggl_status st = GGL_OK;
    size_t n = 0;
    serve_report_begin(&b->report, stdout, o, b->server);
    progress_begin("tests", (double)(o->prompt.n * o->gen.n * n_loads), "measuring");
    for (size_t p = 0; p < o->prompt.n; p++)
        for (size_t g = 0; g < o->gen.n; g++)
            for (size_t i = 0; i < n_loads && st == GGL_OK; i++) {
                progress_set((double)n++);
                st = run_test(b, o->prompt.v[p], o->gen.v[g], i, err);
            }
    progress_end();
    serve_report_end(&b->report);
    return st;
}

static ggl_status run_bench(bench *b, ggl_error *err) {
    int64_t most = 1;
    for (size_t i = 0; i < b->o.clients.n; i++)
        most = b->o.clients.v[i] > most ? b->o.clients.v[i] : most;
    if (b->o.n_rates > 0)
        most = b->o.n_requests;
    const serve_http_options ho = {.timeout = b->o.timeout, .n_connections = most};
    ggl_status st = serve_http_new(&b->http, &ho, err);
    for (size_t i = 0; i < b->o.n_servers && st == GGL_OK; i++) {
        st = set_server(b, i, err);
        progress_begin(NULL, 0, "asking %s", b->o.url[i]);
        if (st == GGL_OK)
            st = ask_tokens(b, i, err);
        progress_end();
        if (st != GGL_OK)
            return ggl_within(err, st, "%s", b->o.url[i]);
    }
    return st == GGL_OK ? run_tests(b, err) : st;
}

static int plot(const bench *b) {
    drawing d = {0};
    serve_plot(&d, b->row, b->n_rows);
    return drawing_save(&d, TOOL, "--plot", b->o.plot);
}

int bench_serve(int argc, char **argv) {
    static bench b;
    ggl_error err = {0};
    b = (bench){.per_word = 1};
    int code = serve_options_read(&b.o, argc, argv);
    if (code < 0) {
        ggl_status st = run_bench(&b, &err);
        code = st != GGL_OK                ? tool_error(TOOL, 1, "%s", err.msg)
               : b.o.plot && plot(&b) != 0 ? 1
                                           : b.failed;
    }
    serve_http_free(b.http);
    for (size_t i = 0; i < b.n_rows; i++)
        serve_row_fini(&b.row[i]);
    ggl_free(b.row);
    serve_options_fini(&b.o);
    return code;
}
