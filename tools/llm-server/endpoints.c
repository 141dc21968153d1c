/* All endpoints, and the way of a request to its own: method, key, media type, JSON. */
#include "endpoints.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "admin.h"
#include "ggl/nearest.h"
#include "server_impl.h"

/* clang-format off */
static const endpoint endpoints[] = {
    {"POST", "/v1/chat/completions", .dialect = &api_openai_chat},
    {"POST", "/v1/completions",      .dialect = &api_openai_completions},
    {"POST", "/v1/responses",        .dialect = &api_openai_responses},
    {"POST", "/v1/embeddings",       .dialect = &api_openai_embeddings},
    {"POST", "/v1/messages",         .dialect = &api_anthropic_messages},
    {"POST", "/v1/messages/count_tokens", .handle = api_anthropic_count, .errors = &api_anthropic_messages},
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
    {"POST", "/chat/completions",    .dialect = &api_openai_chat},
    {"POST", "/embeddings",          .dialect = &api_openai_embeddings},
    {"POST", "/tokenize",            .handle = admin_tokenize},
    {"POST", "/detokenize",          .handle = admin_detokenize},
    {"POST", "/apply-template",      .handle = admin_apply_template},
    {"GET",  "/models",              .handle = admin_models},
    {"GET",  "/props",               .handle = admin_props},
    {"GET",  "/slots",               .handle = admin_slots},
    {"GET",  "/metrics",             .handle = admin_metrics},
    {"GET",  "/health",              .handle = admin_health, .is_public = true, .needs_no_model = true},
    {"GET",  "/v1/health",           .handle = admin_health, .is_public = true, .needs_no_model = true},
    {0}};
/* clang-format on */

/* --- finding ---------------------------------------------------------------------------------- */

static bool path_fits(const char *pattern, const char *path) {
    const size_t n = strlen(pattern);
    if (n > 1 && pattern[n - 1] == '*')
        return strncmp(pattern, path, n - 1) == 0 && path[n - 1];
    return strcmp(pattern, path) == 0;
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
        ggl_nearest_try(&near, e->path, SIZE_MAX);
    return near.best;
}

/* The form of errors for a path, known or not. */
static const dialect *error_form(const char *path) {
    for (const endpoint *e = endpoints; e->method; e++)
        if (path_fits(e->path, path))
            return e->dialect ? e->dialect : e->errors ? e->errors : &api_openai_chat;
    if (strncmp(path, "/v1/messages/", 13) == 0)
        return &api_anthropic_messages;
    return strncmp(path, "/api/", 5) == 0 ? &api_ollama_chat : &api_openai_chat;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Takes as long for a key whose beginning is right as for any other of its length. */
static bool is_equal(const char *a, const char *b) {
    const size_t n_a = strlen(a), n_b = strlen(b);
    volatile unsigned char differs = n_a != n_b;
    for (size_t i = 0; i < n_a; i++)
        differs |= (unsigned char)(a[i] ^ b[n_b > 0 ? i % n_b : 0]);
    return !differs;
}

bool endpoint_key_fits(const char *const *key, size_t n, const char *authorization,
                       const char *x_api_key) {
    const char *given = x_api_key;
    bool fits = false;
    if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0)
        given = authorization + 7 + strspn(authorization + 7, " ");
    for (size_t i = 0; i < n && given; i++)
        fits |= is_equal(given, key[i]);
    return n == 0 || fits;
}

/* --- requests --------------------------------------------------------------------------------- */

static bool fail(server *s, const http_request *q, http_reply *r, int status, const char *type,
                 const char *sentence) {
    const api_error e = {status, type, sentence, NULL};
    server_count(s, offsetof(server_counts, n_errors));
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

/* JSON, or no type at all. A page of another web site can send text/plain, but not JSON, without asking first.
 * `curl -d` calls any body a form; so does a page, but browsers then say where it is from. */
static bool is_json_type(const http_request *q, const char *type) {
    static const char json[] = "application/json", form[] = "application/x-www-form-urlencoded";
    if (!type)
        return true;
    const size_t n = strcspn(type, "; \t");
    if (n == sizeof form - 1 && strncasecmp(type, form, n) == 0)
        return !q->header(q, "Origin") && !q->header(q, "Sec-Fetch-Site");
    const bool has_suffix = n > 5 && strncasecmp(type + n - 5, "+json", 5) == 0;
    return has_suffix || (n == sizeof json - 1 && strncasecmp(type, json, n) == 0);
}

bool endpoints_accept(void *ctx, const http_request *q, http_reply *r) {
    server *s = ctx;
    char allowed[64], text[300];
    const endpoint *e = endpoint_find(q->method, q->path, allowed, sizeof allowed);
    if (!e && page_answers(s, q))
        return true;
    if (!(e && e->is_public) &&
        !endpoint_key_fits(s->o->api_key, s->o->n_api_keys, q->header(q, "Authorization"),
                           q->header(q, "x-api-key"))) {
        http_reply_header(r, "WWW-Authenticate", "Bearer");
        return fail(s, q, r, 401, "authentication",
                    "the API key is missing or wrong; send it as \"Authorization: Bearer KEY\"");
    }
    if (!e)
        return no_endpoint(s, q, r, allowed);
    if (!s->is_ready && !e->needs_no_model)
        return fail(s, q, r, 503, "overloaded", "the model is being loaded; try again soon");
    const char *type = q->header(q, "Content-Type");
    if (strcmp(e->method, "POST") == 0 && !is_json_type(q, type)) {
        snprintf(text, sizeof text, "the Content-Type must be application/json, not %.100s", type);
        return fail(s, q, r, 415, "invalid_request", text);
    }
    if (e->needs_no_model && e->handle) { /* also while all workers prepare answers */
        server_count(s, offsetof(server_counts, n_requests));
        e->handle(s, q, r);
        return false;
    }
    return true;
}

/* Reads the body into an ask. */
static ggl_status read_ask(server *s, const dialect *d, ask **out, const http_request *q,
                           const char **param, ggl_error *err) {
    ask *a = *out = ask_new(server_get_facts(s));
    char *text = a ? ggl_arena_strndup(&a->arena, q->body.s, q->body.n) : NULL;
    if (!text) /* the request's own bytes go before the ask does */
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    const ggl_status st = llm_json_parse(&a->doc, text, q->body.n, "request", err);
    return st == GGL_OK ? d->read(a, server_get_facts(s), param, err) : st;
}

void endpoints_handle(void *ctx, const http_request *q, http_reply *r) {
    server *s = ctx;
    char allowed[64];
    const endpoint *e = endpoint_find(q->method, q->path, allowed, sizeof allowed);
    server_count(s, offsetof(server_counts, n_requests));
    if (!e) {
        page_serve(s, q, r);
        return;
    }
    if (!e->dialect) {
        e->handle(s, q, r);
        return;
    }
    ask *a;
    const char *param = NULL;
    ggl_error err = {0};
    const ggl_status st = read_ask(s, e->dialect, &a, q, &param, &err);
    if (st == GGL_OK) {
        answer_start(s, e->dialect, a, q, r);
        return;
    }
    server_count(s, offsetof(server_counts, n_errors));
    answer_failed(e->dialect, st, &err, param, r);
    ask_free(a);
}

void endpoints_refuse(void *ctx, const http_request *q, http_reply *r, int status,
                      const char *sentence) {
    const char *type = status == 403   ? "permission"
                       : status == 413 ? "too_large"
                       : status == 503 ? "overloaded"
                                       : "invalid_request";
    (void)fail(ctx, q, r, status, type, sentence);
}
