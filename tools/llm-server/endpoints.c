/* The table of endpoints, and the checks before a request gets to its endpoint: method, key, media type, JSON. */
#include "endpoints.h"

#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "answer_impl.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/text.h"
#include "models.h"
#include "multipart.h"
#include "server_impl.h"

static void say_prefix(server *s, const http_request *q, http_reply *r);

/* clang-format off */
static const char one_model[] = "the server has one model, or those of --models, chosen at its start; llm-server -hf USER/REPO downloads one";

static const endpoint endpoints[] = {
    {"POST", "/v1/chat/completions", .dialect = &api_openai_chat},
    {"POST", "/v1/completions",      .dialect = &api_openai_completions},
    {"POST", "/v1/responses",        .dialect = &api_openai_responses},
    {"POST", "/v1/responses/compact", .dialect = &api_openai_compact},
    {"POST", "/v1/responses/*/cancel", .handle_all = admin_response_cancel},
    {"GET",  "/v1/responses/*",      .handle_all = admin_response},
    {"DELETE", "/v1/responses/*",    .handle_all = admin_response_delete},
    {"POST", "/v1/conversations",    .handle_all = admin_talk_create},
    {"GET",  "/v1/conversations/*",  .handle_all = admin_talk},
    {"POST", "/v1/conversations/*",  .handle_all = admin_talk_change},
    {"DELETE", "/v1/conversations/*", .handle_all = admin_talk_delete},
    {"POST", "/v1/embeddings",       .dialect = &api_openai_embeddings},
    {"POST", "/v1/decisions",        .dialect = &api_decisions},
    {"POST", "/v1/systemone",        .dialect = &api_systemone},
    {"POST", "/v1/rerank",           .dialect = &api_rerank},
    {"POST", "/v1/reranking",        .dialect = &api_rerank},
    {"POST", "/v2/rerank",           .dialect = &api_rerank},
    {"POST", "/embed",               .dialect = &api_tei_embed},
    {"POST", "/v1/audio/transcriptions", .handle = speech_transcribe, .takes_form = true},
    {"POST", "/v1/audio/translations", .handle = speech_translate, .takes_form = true},
    {"POST", "/inference",           .handle = speech_infer, .takes_form = true},
    {"POST", "/v1/messages",         .dialect = &api_anthropic_messages},
    {"POST", "/v1/messages/count_tokens", .handle = api_anthropic_count},
    {"POST", "/v1/chat/completions/input_tokens", .handle = api_openai_chat_count},
    {"POST", "/v1/responses/input_tokens", .handle = api_openai_responses_count},
    {"GET",  "/v1/models",           .handle_all = admin_models},
    {"GET",  "/v1/models/*",         .handle_all = admin_model},

    {"POST", "/api/generate",        .dialect = &api_ollama_generate},
    {"POST", "/api/chat",            .dialect = &api_ollama_chat},
    {"POST", "/api/embed",           .dialect = &api_ollama_embed},
    {"POST", "/api/embeddings",      .dialect = &api_ollama_embeddings},
    {"GET",  "/api/tags",            .handle_all = admin_ollama_tags},
    {"GET",  "/api/ps",              .handle_all = admin_ollama_ps},
    {"POST", "/api/show",            .handle = admin_ollama_show, .handle_unloaded = admin_ollama_show_file},
    {"GET",  "/api/version",         .handle_all = admin_ollama_version, .needs_no_model = true},

    {"POST", "/completion",          .dialect = &api_llamacpp_completion},
    {"POST", "/completions",         .dialect = &api_llamacpp_completion},
    {"POST", "/infill",              .dialect = &api_llamacpp_infill},
    {"POST", "/embedding",           .dialect = &api_llamacpp_embedding},
    {"POST", "/embeddings",          .dialect = &api_llamacpp_embeddings},
    {"POST", "/prefix",              .handle = say_prefix},
    {"POST", "/tokenize",            .handle = admin_tokenize},
    {"POST", "/detokenize",          .handle = admin_detokenize},
    {"POST", "/apply-template",      .handle = admin_apply_template},
    {"GET",  "/v1/stream",           .handle_all = admin_stream},
    {"DELETE", "/v1/stream",         .handle_all = admin_stream_cancel},
    {"POST", "/v1/streams/lookup",   .handle_all = admin_streams},
    {"POST", "/models/load",         .handle_all = admin_load},
    {"POST", "/models/unload",       .handle_all = admin_unload},
    {"GET",  "/props",               .handle = admin_props, .handle_all = admin_props_all, .handle_unloaded = admin_props_unloaded, .only_looks = true},
    {"GET",  "/slots",               .handle = admin_slots, .handle_unloaded = admin_slots_unloaded, .only_looks = true},
    {"POST", "/slots/*",             .handle = admin_slot, .handle_unloaded = admin_slot_unloaded},
    {"GET",  "/lora-adapters",       .handle = admin_adapters, .only_looks = true},
    {"POST", "/lora-adapters",       .handle = admin_set_adapters, .takes_list = true},
    {"GET",  "/metrics",             .handle_all = admin_metrics},
    {"GET",  "/health",              .handle_all = admin_health, .is_public = true, .needs_no_model = true},
    {"GET",  "/v1/health",           .handle_all = admin_health, .is_public = true, .needs_no_model = true},
    {"GET",  "/ready",               .handle_all = admin_ready, .is_public = true, .needs_no_model = true},

    {"POST", "/api/pull",            .why = one_model},
    {"POST", "/api/push",            .why = one_model},
    {"POST", "/api/create",          .why = one_model},
    {"POST", "/api/copy",            .why = one_model},
    {"DELETE", "/api/delete",        .why = one_model},

    {0}};
/* clang-format on */

/* --- finding ---------------------------------------------------------------------------------- */

/* True if an endpoint has this path. Those of /v1 may be called without it, unless another endpoint has that path. */
static bool path_fits(const char *pattern, const char *path) {
    static const char v1[] = "/v1";
    if (path_fits_pattern(pattern, path))
        return true;
    if (strncmp(pattern, v1, sizeof v1 - 1) != 0 ||
        !path_fits_pattern(pattern + sizeof v1 - 1, path))
        return false;
    for (const endpoint *e = endpoints; e->method; e++)
        if (path_fits_pattern(e->path, path))
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

/* Without "/v1", which all paths of an API have, and which says nothing of how near they are. */
static const char *own_path(const char *path) {
    return strncmp(path, "/v1/", 4) == 0 ? path + 3 : path;
}

const char *endpoint_nearest(const char *path) {
    ggl_nearest near = ggl_nearest_to(own_path(path));
    const char *best = NULL, *own = NULL;
    for (const endpoint *e = endpoints; e->method; e++) {
        if (!e->why && !strchr(e->path, '*'))
            ggl_nearest_try(&near, own_path(e->path), SIZE_MAX);
        best = near.best == own ? best : e->path;
        own = near.best;
    }
    return near.distance <= 1 + strlen(near.wanted) / 8 ? best : NULL;
}

/* What the header X-Prefix of an answer would be. */
static void say_prefix(server *s, const http_request *q, http_reply *r) {
    const char *path = q->parameter(q, "path");
    char allowed[64];
    const endpoint *e =
        endpoint_find("POST", path ? path : "/v1/chat/completions", allowed, sizeof allowed);
    admin_prefix(s, e ? e->dialect : NULL, q, r);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Gives the reply an id, unless it has one, in the header where the path's clients look for it. */
static void say_id(const http_request *q, http_reply *r) {
    const char *name = request_errors(q) == &api_anthropic_messages ? "request-id" : "x-request-id";
    char id[32] = "req_";
    if (http_reply_find_header(r, name))
        return;
    random_text(id + 4, 24);
    http_reply_header(r, name, id);
}

static bool fail(models *t, const http_request *q, http_reply *r, int status, const char *type,
                 const char *sentence) {
    const api_error e = {.status = status, .type = type, .message = sentence};
    say_id(q, r);
    models_count(t, NULL, COUNT_ERRORS);
    answer_error(request_errors(q), &e, r);
    return false;
}

static bool no_endpoint(models *t, const http_request *q, http_reply *r, const char *allowed) {
    char text[400];
    const char *near = endpoint_nearest(q->path);
    if (*allowed) {
        http_reply_header(r, "Allow", allowed);
        snprintf(text, sizeof text, "%s %.100s: the method must be %s", q->method, q->path,
                 allowed);
        return fail(t, q, r, 405, "invalid_request", text);
    }
    snprintf(text, sizeof text, "there is no %.100s here%s%s%s", q->path,
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return fail(t, q, r, 404, "not_found", text);
}

/* True for JSON. Programs may also send no type, or the default of curl. Pages in a browser, whose requests have an Origin,
 * may not: those of other web sites can send these types, but not JSON, without asking the server first. */
static bool is_json_type(const char *type, const char *origin) {
    static const char json[] = "application/json", form[] = "application/x-www-form-urlencoded";
    if (!type)
        return !origin;
    const size_t n = strcspn(type, "; \t");
    if (!origin && n == sizeof form - 1 && ggl_case_compare_n(type, form, n) == 0)
        return true;
    const bool has_suffix = n > 5 && ggl_case_compare_n(type + n - 5, "+json", 5) == 0;
    return has_suffix || (n == sizeof json - 1 && ggl_case_compare_n(type, json, n) == 0);
}

bool endpoints_accept(void *ctx, const http_request *q, http_reply *r) {
    models *t = ctx;
    const server_options *o = models_options(t);
    char allowed[64], text[300];
    const endpoint *e = endpoint_find(q->method, q->path, allowed, sizeof allowed);
    if (!e && page_answers(o, q))
        return true;
    const size_t n_keys = o->n_api_keys;
    if (!(e && e->is_public) && n_keys > 0 &&
        endpoint_find_key(o->api_key, n_keys, q->header(q, "Authorization"),
                          q->header(q, "x-api-key")) == n_keys) {
        const bool is_anthropic = request_errors(q) == &api_anthropic_messages;
        http_reply_header(r, "WWW-Authenticate", "Bearer");
        snprintf(text, sizeof text,
                 "the API key is missing or wrong; send it as %s\"Authorization: Bearer KEY\"",
                 is_anthropic ? "\"x-api-key: KEY\" or " : "");
        return fail(t, q, r, 401, "authentication", text);
    }
    if (!e)
        return no_endpoint(t, q, r, allowed);
    if (e->why)
        return fail(t, q, r, 501, "unsupported", e->why);
    if (o->no_slots && e->handle == admin_slots)
        return fail(t, q, r, 501, "unsupported", "the server was started with --no-slots");
    if (!models_is_ready(t) && !e->needs_no_model)
        return fail(t, q, r, 503, "overloaded", "the model is being loaded; try again soon");
    const char *type = q->header(q, "Content-Type");
    if (strcmp(e->method, "POST") == 0 && !e->takes_form &&
        !is_json_type(type, q->header(q, "Origin"))) {
        snprintf(text, sizeof text, "the Content-Type must be application/json, not %.100s",
                 type ? type : "missing");
        return fail(t, q, r, 415, "invalid_request", text);
    }
    if (e->takes_form && !multipart_is_type(type))
        return fail(t, q, r, 415, "invalid_request",
                    "the Content-Type must be multipart/form-data, with the sound as \"file\"");
    if (e->needs_no_model) { /* here, in case all workers are busy */
        models_count(t, NULL, COUNT_REQUESTS);
        e->handle_all(t, q, r);
        return false;
    }
    return true;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Writes why a request of n_body bytes, which may take n, is refused, and returns the status. */
static int why_no_room(memory *m, size_t n_body, size_t n, char *text, size_t size) {
    const size_t most = memory_most(m, MEMORY_REQUESTS);
    if (n > most)
        snprintf(text, size,
                 "a request of %zu bytes may take %zu MiB, more than the %zu MiB that requests may "
                 "have together (half of --request-memory)",
                 n_body, n >> 20, most >> 20);
    else
        snprintf(text, size,
                 "no memory for the request: it may take %zu MiB, and requests hold %zu of the %zu "
                 "MiB that they may have together (--request-memory); try again later",
                 n >> 20, memory_held(m, MEMORY_REQUESTS) >> 20, most >> 20);
    return n > most ? 413 : 503;
}

/* Holds what reading a body may take at most, unless it is a form, of which nothing is copied; read_ask checks that its long runs of digits are pictures. *kept: what stays of it. False: it
 * was refused. */
static bool hold_body(models *t, const endpoint *e, const http_request *q, http_reply *r,
                      memory_hold *h, size_t *kept) {
    memory *m = models_memory(t);
    char text[300];
    *kept = e->takes_form ? q->body.n : ask_doc_bytes(q->body);
    *h = (memory_hold){.of = m, .use = MEMORY_REQUESTS};
    const size_t n_digits = e->dialect ? ask_digit_bytes(q->body) : 0,
                 n = *kept + (e->takes_form ? 0 : ask_reading_bytes(q->body.n, n_digits));
    if (memory_set(h, n))
        return true;
    const int status = why_no_room(m, q->body.n, n, text, sizeof text);
    return fail(t, q, r, status, status == 413 ? "too_large" : "overloaded", text);
}

/* Reads the fields. An id of a stream that is too long, and tools that the template does not show to the model, are named
 * among what is ignored. */
static ggl_status read_fields_of(server *s, const dialect *d, ask *a, const http_request *q,
                                 const char **param, ggl_error *err) {
    const server_facts *facts = server_get_facts(s);
    const char *id = q->header(q, "X-Conversation-Id");
    ggl_status st = d->read(a, facts, param, err);
    if (st == GGL_OK && id && strlen(id) > STREAM_ID)
        st = fields_ignore(&a->ignored, NULL, (ggl_str){"X-Conversation-Id", 17}, err);
    if (st != GGL_OK || a->kind != ASK_CHAT || !a->tools || facts->shows_tools || a->ignored.strict)
        return st;
    return fields_ignore(&a->ignored, NULL, (ggl_str){"tools", 5}, err);
}

/* Reads the body into an ask, which has the memory that is held from here on. */
static ggl_status read_ask(server *s, const dialect *d, ask **out, memory_hold held, size_t kept,
                           const http_request *q, http_reply *r, const char **param,
                           ggl_error *err) {
    ask *a = *out = answer_new_ask(s, q);
    if (!a) {
        memory_force(&held, 0);
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    }
    a->held = held;
    a->n_held_doc = kept;
    a->n_body = q->body.n;
    a->n_digits = ask_digit_bytes(q->body);
    a->body = http_reply_take_body(r); /* the request's bytes are freed before the answer ends */
    const ggl_status st =
        llm_json_parse(&a->doc, a->body ? a->body : "", q->body.n, "request", err);
    return st == GGL_OK ? read_fields_of(s, d, a, q, param, err) : st;
}

/* Holds what the request takes now that it is known which of its bytes are pictures. False: it was refused. */
static bool hold_read(server *s, const dialect *d, ask *a, http_reply *r) {
    char text[300];
    const size_t n = a->n_held_doc + ask_reading_bytes(a->n_body, a->n_image_text);
    if (n <= a->held.n || memory_set(&a->held, n))
        return true;
    const int status = why_no_room(a->held.of, a->n_body, n, text, sizeof text);
    const api_error e = {
        .status = status, .type = status == 413 ? "too_large" : "overloaded", .message = text};
    server_count(s, COUNT_ERRORS);
    answer_error(d, &e, r);
    return false;
}

/* Answers a request for a model that is loaded. held: what hold_body gave; the answer has it from here on. */
static void run(const endpoint *e, server *s, memory_hold held, size_t kept, const http_request *q,
                http_reply *r) {
    ask *a;
    const char *param = NULL;
    ggl_error err = {0};
    if (!e->dialect) {
        e->handle(s, q, r);
        memory_force(&held, 0);
        return;
    }
    const ggl_status st = read_ask(s, e->dialect, &a, held, kept, q, r, &param, &err);
    if (a)
        server_say_ignored(s, &a->ignored, q, r);
    if (st == GGL_OK && hold_read(s, e->dialect, a, r)) {
        answer_start(s, e->dialect, a, q, r);
        return;
    }
    if (st != GGL_OK) {
        server_count(s, COUNT_ERRORS);
        answer_unread(e->dialect, a, st, &err, param, r);
    }
    ask_free(a);
}

/* Answers a request that gets no model. */
static void fail_model(models *t, ggl_status st, const ggl_error *err, const http_request *q,
                       http_reply *r) {
    const api_error too_many = {.status = 503, .type = "overloaded", .message = err->msg};
    models_count(t, NULL, st == GGL_LIMIT ? COUNT_REJECTED : COUNT_ERRORS);
    if (st == GGL_LIMIT)
        answer_error(request_errors(q), &too_many, r);
    else
        answer_failed(request_errors(q), st, err, st == GGL_IO || st == GGL_FORMAT ? NULL : "model",
                      r);
}

/* The model for which the request has waited is there, or could not be loaded. */
static void go_on(models *t, server *s, const ggl_error *err, const http_request *q,
                  http_reply *r) {
    char allowed[64];
    memory_hold held;
    size_t kept;
    const endpoint *e = endpoint_find(q->method, q->path, allowed, sizeof allowed);
    if (!s)
        fail_model(t, err->status, err, q, r);
    else if (http_reply_is_gone(r))
        http_reply_end(r);
    else if (hold_body(t, e, q, r, &held, &kept))
        run(e, s, held, kept, q, r);
    if (s)
        server_release(s);
}

/* Finds the model of a request, and answers it, now or once the model is loaded: until then the body alone is held. why: why the
 * request names none. */
static void choose(models *t, const endpoint *e, memory_hold held, size_t kept,
                   const http_request *q, http_reply *r, const char *name, const ggl_error *why) {
    ggl_error err = {0};
    model *m = models_find(t, name, &err);
    if (!m && !name && why->status != GGL_OK)
        err = *why;
    server *s = NULL;
    ggl_status st = m ? GGL_OK : err.status;
    models_count(t, m, COUNT_REQUESTS);
    server *seen = m && e->only_looks ? model_peek(m) : NULL;
    if (seen) {
        run(e, seen, held, kept, q, r);
        model_unpeek(seen);
        return;
    }
    const bool is_done = m && e->handle_unloaded && model_get_status(m).state != MODEL_LOADED &&
                         e->handle_unloaded(m, q, r);
    if (st == GGL_OK && !is_done)
        st = models_take(m, &s, models_client(t, q), q, r, go_on, &err);
    if (st != GGL_OK)
        fail_model(t, st, &err, q, r);
    if (!s) {
        memory_force(&held, 0);
        return;
    }
    run(e, s, held, kept, q, r);
    server_release(s);
}

void endpoints_handle(void *ctx, const http_request *q, http_reply *r) {
    models *t = ctx;
    char allowed[64];
    memory_hold held;
    size_t kept;
    const endpoint *e = endpoint_find(q->method, q->path, allowed, sizeof allowed);
    if (!e) {
        models_count(t, NULL, COUNT_REQUESTS);
        page_serve(q, r);
        return;
    }
    say_id(q, r);
    streams_expire(models_streams(t));
    if (models_store(t))
        store_expire(models_store(t));
    if (!hold_body(t, e, q, r, &held, &kept))
        return;
    ggl_error why = {0};
    char *name = models_is_single(t) ? NULL : endpoint_model(q, &why);
    if (e->takes_list && !name)
        (void)ggl_fail(&why, GGL_USAGE,
                       "?model=NAME behind the path says for which model this list is");
    if (e->handle_all && !(e->handle && (models_is_single(t) || name))) {
        models_count(t, NULL, COUNT_REQUESTS);
        e->handle_all(t, q, r);
        memory_force(&held, 0);
    } else {
        choose(t, e, held, kept, q, r, name, &why);
    }
    ggl_free(name);
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
