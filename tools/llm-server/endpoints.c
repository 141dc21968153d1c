/* The table of endpoints, and the checks before a request gets to its endpoint: method, key, media type, JSON. */
#include "endpoints.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "admin.h"
#include "answer_impl.h"
#include "common/digest.h"
#include "ggl/nearest.h"
#include "log.h"
#include "server_impl.h"

/* clang-format off */
static const char no_adapters[] = "adapters are chosen when the server starts (--lora), and cannot be changed by requests";
static const char no_slots[] = "slots cannot be saved, restored or erased by requests; the server keeps common beginnings of prompts by itself";
static const char one_model[] = "the server has one model, which was chosen at its start; llm-server -hf USER/REPO downloads one";
static const char no_ranks[] = "this server ranks no documents";

static const endpoint endpoints[] = {
    {"POST", "/v1/chat/completions", .dialect = &api_openai_chat},
    {"POST", "/v1/completions",      .dialect = &api_openai_completions},
    {"POST", "/v1/responses",        .dialect = &api_openai_responses},
    {"POST", "/v1/responses/compact", .dialect = &api_openai_compact},
    {"POST", "/v1/embeddings",       .dialect = &api_openai_embeddings},
    {"POST", "/v1/messages",         .dialect = &api_anthropic_messages},
    {"POST", "/v1/messages/count_tokens", .handle = api_anthropic_count, .errors = &api_anthropic_messages},
    {"POST", "/v1/chat/completions/input_tokens", .handle = api_openai_chat_count},
    {"POST", "/v1/responses/input_tokens", .handle = api_openai_responses_count},
    {"GET",  "/v1/models",           .handle = admin_models},
    {"GET",  "/v1/models/*",         .handle = admin_model},

    {"POST", "/api/generate",        .dialect = &api_ollama_generate},
    {"POST", "/api/chat",            .dialect = &api_ollama_chat},
    {"POST", "/api/embed",           .dialect = &api_ollama_embed},
    {"POST", "/api/embeddings",      .dialect = &api_ollama_embeddings},
    {"GET",  "/api/tags",            .handle = admin_ollama_tags,    .errors = &api_ollama_chat},
    {"GET",  "/api/ps",              .handle = admin_ollama_ps,      .errors = &api_ollama_chat},
    {"POST", "/api/show",            .handle = admin_ollama_show,    .errors = &api_ollama_chat},
    {"GET",  "/api/version",         .handle = admin_ollama_version, .errors = &api_ollama_chat, .needs_no_model = true},

    {"POST", "/completion",          .dialect = &api_llamacpp_completion},
    {"POST", "/completions",         .dialect = &api_llamacpp_completion},
    {"POST", "/infill",              .dialect = &api_llamacpp_infill},
    {"POST", "/tokenize",            .handle = admin_tokenize},
    {"POST", "/detokenize",          .handle = admin_detokenize},
    {"POST", "/apply-template",      .handle = admin_apply_template},
    {"GET",  "/props",               .handle = admin_props},
    {"GET",  "/slots",               .handle = admin_slots},
    {"GET",  "/metrics",             .handle = admin_metrics},
    {"GET",  "/health",              .handle = admin_health, .is_public = true, .needs_no_model = true},
    {"GET",  "/v1/health",           .handle = admin_health, .is_public = true, .needs_no_model = true},

    {"POST", "/api/pull",            .why = one_model, .errors = &api_ollama_chat},
    {"POST", "/api/push",            .why = one_model, .errors = &api_ollama_chat},
    {"POST", "/api/create",          .why = one_model, .errors = &api_ollama_chat},
    {"POST", "/api/copy",            .why = one_model, .errors = &api_ollama_chat},
    {"DELETE", "/api/delete",        .why = one_model, .errors = &api_ollama_chat},

    {"GET",  "/lora-adapters",       .why = no_adapters},
    {"POST", "/lora-adapters",       .why = no_adapters},
    {"POST", "/slots/*",             .why = no_slots},
    {"POST", "/rerank",              .why = no_ranks},
    {"POST", "/reranking",           .why = no_ranks},
    {"POST", "/v1/rerank",           .why = no_ranks},
    {"POST", "/v1/reranking",        .why = no_ranks},
    {"POST", "/embedding",           .why = "there is no /embedding here; /v1/embeddings has OpenAI's form, /api/embed Ollama's"},
    {0}};
/* clang-format on */

/* --- finding ---------------------------------------------------------------------------------- */

static bool is_path(const char *pattern, const char *path) {
    const size_t n = strlen(pattern);
    if (n > 1 && pattern[n - 1] == '*')
        return strncmp(pattern, path, n - 1) == 0 && path[n - 1];
    return strcmp(pattern, path) == 0;
}

/* True if an endpoint has this path. Those of /v1 may be called without it, unless another endpoint has that path. */
static bool path_fits(const char *pattern, const char *path) {
    static const char v1[] = "/v1";
    if (is_path(pattern, path))
        return true;
    if (strncmp(pattern, v1, sizeof v1 - 1) != 0 || !is_path(pattern + sizeof v1 - 1, path))
        return false;
    for (const endpoint *e = endpoints; e->method; e++)
        if (is_path(e->path, path))
            return false;
    return true;
}

/* HEAD is answered as GET is; the HTTP library leaves the body out. */
static bool method_fits(const char *of_endpoint, const char *method) {
    return strcmp(of_endpoint, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0;
}

const endpoint *endpoint_find(const char *method, const char *path, char *allowed, size_t size) {
    size_t n = 0;
    *allowed = '\0';
    for (const endpoint *e = endpoints; e->method; e++) {
        if (!path_fits(e->path, path))
            continue;
        if (method_fits(e->method, method))
            return e;
        if (n < size)
            n += (size_t)snprintf(allowed + n, size - n, "%s%s%s", n > 0 ? ", " : "", e->method,
                                  strcmp(e->method, "GET") == 0 ? ", HEAD" : "");
    }
    return NULL;
}

const char *endpoint_nearest(const char *path) {
    ggl_nearest near = ggl_nearest_to(path);
    for (const endpoint *e = endpoints; e->method; e++)
        if (!e->why)
            ggl_nearest_try(&near, e->path, SIZE_MAX);
    return near.best;
}

/* Returns the dialect whose form errors have for a path, known or not. */
static const dialect *error_form(const char *path) {
    for (const endpoint *e = endpoints; e->method; e++)
        if (path_fits(e->path, path))
            return e->dialect ? e->dialect : e->errors ? e->errors : &api_openai_chat;
    if (is_path("/v1/messages/*", path))
        return &api_anthropic_messages;
    return is_path("/api/*", path) ? &api_ollama_chat : &api_openai_chat;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Compares keys. The time does not depend on how many bytes are equal, from which one could guess a key byte by byte. */
static bool is_equal(const char *a, const char *b) {
    const size_t n_a = strlen(a), n_b = strlen(b);
    volatile unsigned char differs = n_a != n_b;
    for (size_t i = 0; i < n_a; i++)
        differs |= (unsigned char)(a[i] ^ b[n_b > 0 ? i % n_b : 0]);
    return !differs;
}

size_t endpoint_find_key(const char *const *key, size_t n, const char *authorization,
                         const char *x_api_key) {
    const char *given = x_api_key;
    size_t found = n;
    if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0)
        given = authorization + 7 + strspn(authorization + 7, " ");
    for (size_t i = 0; i < n && given; i++)
        found = is_equal(given, key[i]) ? i : found;
    return found;
}

uint64_t endpoint_client(const char *const *key, size_t n, const char *authorization,
                         const char *x_api_key, const char *address) {
    const size_t i = endpoint_find_key(key, n, authorization, x_api_key);
    if (i < n)
        return i;
    return llm_digest(LLM_DIGEST_START, address, address ? strlen(address) : 0);
}

uint64_t server_client(const server *s, const http_request *q) {
    return endpoint_client(s->o->api_key, s->o->n_api_keys, q->header(q, "Authorization"),
                           q->header(q, "x-api-key"), q->client);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Gives the reply an id, in the header where the path's clients look for it. */
static void say_id(const http_request *q, http_reply *r) {
    char id[32] = "req_";
    answer_random_text(id + 4, 24);
    http_reply_header(
        r, error_form(q->path) == &api_anthropic_messages ? "request-id" : "x-request-id", id);
}

static bool fail(server *s, const http_request *q, http_reply *r, int status, const char *type,
                 const char *sentence) {
    const api_error e = {.status = status, .type = type, .message = sentence};
    say_id(q, r);
    server_count(s, COUNT_ERRORS);
    answer_error(error_form(q->path), &e, r);
    return false;
}

static bool no_endpoint(server *s, const http_request *q, http_reply *r, const char *allowed) {
    char text[400];
    const char *near = endpoint_nearest(q->path);
    if (*allowed) {
        http_reply_header(r, "Allow", allowed);
        snprintf(text, sizeof text, "%s %.100s: the method must be %s", q->method, q->path,
                 allowed);
        return fail(s, q, r, 405, "invalid_request", text);
    }
    snprintf(text, sizeof text, "there is no %.100s here%s%s%s", q->path,
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return fail(s, q, r, 404, "not_found", text);
}

/* True for JSON. Programs may also send no type, or the default of curl. Pages in a browser, whose requests have an Origin,
 * may not: those of other web sites can send these types, but not JSON, without asking the server first. */
static bool is_json_type(const char *type, const char *origin) {
    static const char json[] = "application/json", form[] = "application/x-www-form-urlencoded";
    if (!type)
        return !origin;
    const size_t n = strcspn(type, "; \t");
    if (!origin && n == sizeof form - 1 && strncasecmp(type, form, n) == 0)
        return true;
    const bool has_suffix = n > 5 && strncasecmp(type + n - 5, "+json", 5) == 0;
    return has_suffix || (n == sizeof json - 1 && strncasecmp(type, json, n) == 0);
}

bool endpoints_accept(void *ctx, const http_request *q, http_reply *r) {
    server *s = ctx;
    char allowed[64], text[300];
    const endpoint *e = endpoint_find(q->method, q->path, allowed, sizeof allowed);
    if (!e && page_answers(s, q))
        return true;
    const size_t n_keys = s->o->n_api_keys;
    if (!(e && e->is_public) && n_keys > 0 &&
        endpoint_find_key(s->o->api_key, n_keys, q->header(q, "Authorization"),
                          q->header(q, "x-api-key")) == n_keys) {
        http_reply_header(r, "WWW-Authenticate", "Bearer");
        return fail(s, q, r, 401, "authentication",
                    "the API key is missing or wrong; send it as \"Authorization: Bearer KEY\"");
    }
    if (!e)
        return no_endpoint(s, q, r, allowed);
    if (e->why)
        return fail(s, q, r, 501, "unsupported", e->why);
    if (!s->is_ready && !e->needs_no_model)
        return fail(s, q, r, 503, "overloaded", "the model is being loaded; try again soon");
    const char *type = q->header(q, "Content-Type");
    if (strcmp(e->method, "POST") == 0 && !is_json_type(type, q->header(q, "Origin"))) {
        snprintf(text, sizeof text, "the Content-Type must be application/json, not %.100s",
                 type ? type : "missing");
        return fail(s, q, r, 415, "invalid_request", text);
    }
    if (e->needs_no_model && e->handle) { /* here, in case all workers are busy */
        server_count(s, COUNT_REQUESTS);
        e->handle(s, q, r);
        return false;
    }
    return true;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* What a body takes once it is read: itself, and the values of JSON, of which each has a mark. */
static size_t doc_bytes(ggl_str body) {
    enum { VALUE_BYTES = 16 };
    size_t n_marks = body.n > 0;
    for (size_t i = 0; i < body.n; i++)
        n_marks += body.s[i] == ',' || body.s[i] == ':' || body.s[i] == '[' || body.s[i] == '{';
    return body.n + n_marks * VALUE_BYTES;
}

/* Holds what reading a body may take at most: its texts are rendered and tokenized, too. *kept: what stays of it. False: it
 * was refused. */
static bool hold_body(server *s, const http_request *q, http_reply *r, memory_hold *h,
                      size_t *kept) {
    enum { TEXT_BYTES = 40 }; /* for each byte, as far as seen */
    char text[300];
    *kept = doc_bytes(q->body);
    *h = (memory_hold){.of = s->memory, .use = MEMORY_REQUESTS};
    const size_t n = *kept + q->body.n * TEXT_BYTES, most = memory_most(s->memory, h->use);
    if (memory_set(h, n))
        return true;
    if (n > most)
        snprintf(text, sizeof text,
                 "a request of %zu bytes may take %zu MiB, more than the %zu MiB that requests may "
                 "have together (half of --request-memory)",
                 q->body.n, n >> 20, most >> 20);
    else
        snprintf(text, sizeof text,
                 "no memory for the request: it may take %zu MiB, and requests hold %zu of the %zu "
                 "MiB that they may have together (--request-memory); try again later",
                 n >> 20, memory_held(s->memory, h->use) >> 20, most >> 20);
    return fail(s, q, r, n > most ? 413 : 503, n > most ? "too_large" : "overloaded", text);
}

/* Reads the body into an ask. */
static ggl_status read_ask(server *s, const dialect *d, ask **out, const http_request *q,
                           http_reply *r, const char **param, ggl_error *err) {
    ask *a = *out = ask_new(server_get_facts(s));
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    a->body = http_reply_take_body(r); /* the request's bytes are freed before the answer ends */
    const ggl_status st =
        llm_json_parse(&a->doc, a->body ? a->body : "", q->body.n, "request", err);
    return st == GGL_OK ? d->read(a, server_get_facts(s), param, err) : st;
}

void server_say_ignored(const server *s, const ignored_fields *x, const http_request *q,
                        http_reply *r) {
    if (!x->n)
        return;
    http_reply_header(r, "X-Ignored-Fields", x->names);
    if (s->log)
        log_line(s->log, "%s %s %s ignored: %s", q->client, q->method, q->path, x->names);
}

void endpoints_handle(void *ctx, const http_request *q, http_reply *r) {
    server *s = ctx;
    char allowed[64];
    const endpoint *e = endpoint_find(q->method, q->path, allowed, sizeof allowed);
    server_count(s, COUNT_REQUESTS);
    if (e)
        say_id(q, r);
    if (!e) {
        page_serve(s, q, r);
        return;
    }
    memory_hold held;
    size_t kept;
    if (!hold_body(s, q, r, &held, &kept))
        return;
    if (!e->dialect) {
        e->handle(s, q, r);
        memory_force(&held, 0);
        return;
    }
    ask *a;
    const char *param = NULL;
    ggl_error err = {0};
    const ggl_status st = read_ask(s, e->dialect, &a, q, r, &param, &err);
    if (a) {
        a->held = held;
        a->n_held_doc = kept;
    } else {
        memory_force(&held, 0);
    }
    if (a)
        server_say_ignored(s, &a->ignored, q, r);
    if (st == GGL_OK) {
        answer_start(s, e->dialect, a, q, r);
        return;
    }
    server_count(s, COUNT_ERRORS);
    answer_failed(e->dialect, st, &err, param, r);
    ask_free(a);
}

void endpoints_refuse(void *ctx, const http_request *q, http_reply *r, int status,
                      const char *sentence) {
    const char *type = status == 403                    ? "permission"
                       : status == 413 || status == 414 ? "too_large"
                       : status == 503                  ? "overloaded"
                       : status == 501                  ? "unsupported"
                                                        : "invalid_request";
    (void)fail(ctx, q, r, status, type, sentence);
}
