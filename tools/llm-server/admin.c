/* The server's state in the form of llama.cpp's server. */
#include "admin.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_pieces.h"
#include "api_shape.h"
#include "ggl/internal/backends.h"
#include "slot_file.h"

#ifndef TOOLS_VERSION
#define TOOLS_VERSION "unknown"
#endif

enum { MOST_LOOKUPS = 100 };

void admin_send(llm_json_out *out, const http_request *q, http_reply *r) {
    if (out->failed || out->n == 0) {
        const api_error e = api_error_of(GGL_NOMEM, NULL, NULL);
        answer_error(request_errors(q), &e, r);
    } else {
        http_reply_header(r, "Cache-Control", "no-store");
        http_reply_begin(r, 200, "application/json", false);
        http_reply_write(r, out->s, out->n);
        http_reply_end(r);
    }
    ggl_free(out->s);
}

void admin_put_string(llm_json_out *out, const char *s) {
    llm_json_put_string(out, (ggl_str){s, strlen(s)});
}

void admin_health(models *t, const http_request *q, http_reply *r) {
    static const char ok[] = "{\"status\": \"ok\"}",
                      loading[] = "{\"error\": {\"code\": 503, \"message\": \"Loading model\", "
                                  "\"type\": \"unavailable_error\"}}";
    const bool is_ready = models_is_ready(t);
    ggl_error err;
    (void)q;
    if (ggl_ranks_are_lost(&err)) {
        llm_json_out out = {0};
        llm_json_format(&out,
                        "{'error': {'code': 503, 'message': %.*s, 'type': 'unavailable_error'}}",
                        LLM_JSON_STR(((ggl_str){err.msg, strlen(err.msg)})));
        http_reply_begin(r, 503, "application/json", false);
        http_reply_write(r, out.s, out.failed ? 0 : out.n);
        http_reply_end(r);
        ggl_free(out.s);
        return;
    }
    http_reply_begin(r, is_ready ? 200 : 503, "application/json", false);
    http_reply_write(r, is_ready ? ok : loading, is_ready ? sizeof ok - 1 : sizeof loading - 1);
    http_reply_end(r);
}

void admin_ready(models *t, const http_request *q, http_reply *r) {
    static const char *const word[] = {[MODELS_READY] = "ready",
                                       [MODELS_LOADING] = "loading",
                                       [MODELS_DRAINING] = "draining",
                                       [MODELS_FULL] = "full"};
    const models_readiness x = models_get_readiness(t);
    const bool is_lost = ggl_ranks_are_lost(NULL); /* a rank of the job: no model runs any more */
    char text[40];
    const int n = snprintf(text, sizeof text, "{\"status\": \"%s\"}", is_lost ? "lost" : word[x]);
    (void)q;
    http_reply_begin(r, x == MODELS_READY && !is_lost ? 200 : 503, "application/json", false);
    http_reply_write(r, text, (size_t)n);
    http_reply_end(r);
}

/* --- /props ----------------------------------------------------------------------------------- */

/* props: of server_props; freed. */
static void send_props(char *props, bool is_sleeping, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    out.failed = !props;
    llm_json_format(&out, "%s, 'is_sleeping': %s}", props ? props : "",
                    is_sleeping ? "true" : "false");
    ggl_free(props);
    admin_send(&out, q, r);
}

void admin_props(server *s, const http_request *q, http_reply *r) {
    send_props(server_props(s), false, q, r);
}

bool admin_props_unloaded(model *m, const http_request *q, http_reply *r) {
    char *props = model_props(m);
    if (!props)
        return false; /* it was never loaded */
    const model_state state = model_get_status(m).state;
    send_props(props, state == MODEL_UNLOADED || state == MODEL_UNLOADING, q, r);
    return true;
}

/* Several models, none of which is named: the form of llama.cpp's router. */
void admin_props_all(models *t, const http_request *q, http_reply *r) {
    const server_options *o = models_options(t);
    llm_json_out out = {0};
    llm_json_format(
        &out,
        "{\"role\": \"router\", \"max_instances\": %" PRId64
        ", \"models_autoload\": %s, \"model_alias\": \"llm-server\", \"model_path\": \"none\", "
        "\"default_generation_settings\": {\"params\": null, \"n_ctx\": 0}, "
        "\"build_info\": \"b" TOOLS_VERSION "-llm-server\"}",
        o->models_max, o->no_autoload ? "false" : "true");
    admin_send(&out, q, r);
}

/* --- /slots ----------------------------------------------------------------------------------- */

typedef struct slots_ctx {
    server *s;
    int64_t n_running;
    llm_json_out out;
} slots_ctx;

static bool slot_runs(const llm_slot_info *i) {
    return i->use == LLM_SLOT_PROMPT || i->use == LLM_SLOT_GENERATES;
}

static void put_slot(llm_json_out *out, const server *s, const llm_slot_info *i, int slot) {
    static const char *const uses[] = {[LLM_SLOT_EMPTY] = "empty",
                                       [LLM_SLOT_KEPT] = "kept",
                                       [LLM_SLOT_PROMPT] = "prompt",
                                       [LLM_SLOT_GENERATES] = "generates"};
    const bool runs = slot_runs(i);
    llm_json_format(
        out,
        "%s{\"id\": %d, \"id_task\": %" PRId64 ", \"n_ctx\": %" PRId64
        ", \"speculative\": %s, \"is_processing\": %s, \"use\": \"%s\", \"n_past\": %" PRId64
        ", \"n_shared\": %" PRId64,
        slot ? ", " : "", slot, i->id ? (int64_t)i->id : -1, s->facts.n_ctx,
        llm_opened_guessing(s->ctx) ? "true" : "false", runs ? "true" : "false", uses[i->use],
        i->n_past, i->n_shared);
    if (runs)
        llm_json_format(out,
                        ", \"n_prompt\": %" PRId64 ", \"n_reused\": %" PRId64
                        ", \"next_token\": [{\"has_next_token\": true, \"n_remain\": %" PRId64
                        ", \"n_decoded\": %" PRId64 "}]",
                        i->stats.n_prompt, i->stats.n_reused, i->n_left, i->stats.n_drawn);
    llm_json_put_text(out, "}");
}

static void put_slots(void *ctx, llm_engine *e) {
    slots_ctx *c = ctx;
    llm_json_put_text(&c->out, "[");
    for (int i = 0; i < (int)llm_opened_session_params(c->s->ctx)->n_slots; i++) {
        const llm_slot_info info = llm_engine_slot(e, i);
        put_slot(&c->out, c->s, &info, i);
        c->n_running += slot_runs(&info);
    }
    llm_json_put_text(&c->out, "]");
}

/* A model that hears has one slot: it writes down one sound at a time. */
static void put_speech_slot(slots_ctx *c) {
    size_t n_running, n_waiting;
    turn_queue_count(c->s->speech, &n_running, &n_waiting);
    const llm_slot_info i = {.use = n_running ? LLM_SLOT_GENERATES : LLM_SLOT_EMPTY, .n_left = -1};
    llm_json_put_text(&c->out, "[");
    put_slot(&c->out, c->s, &i, 0);
    llm_json_put_text(&c->out, "]");
    c->n_running = (int64_t)n_running;
}

void admin_slots(server *s, const http_request *q, http_reply *r) {
    static const api_error busy = {
        .status = 503, .type = "overloaded", .message = "no slot available"};
    const char *fails = q->parameter(q, "fail_on_no_slot");
    slots_ctx c = {.s = s};
    if (s->facts.hears)
        put_speech_slot(&c);
    else
        c.out.failed = !server_on_engine(s, put_slots, &c);
    if (fails && *fails && c.n_running >= s->facts.n_parallel) {
        ggl_free(c.out.s);
        answer_error(request_errors(q), &busy, r);
    } else {
        admin_send(&c.out, q, r);
    }
}

/* No slot is busy, so ?fail_on_no_slot changes nothing: a request would load the model. */
bool admin_slots_unloaded(model *m, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    (void)m;
    llm_json_put_text(&out, "[]");
    admin_send(&out, q, r);
    return true;
}

/* --- POST /slots/N ---------------------------------------------------------------------------- */

/* The body's fields. */
typedef struct slot_body {
    const json_value *filename, *model;
} slot_body;

static ggl_status read_slot_body(slot_request *x, const http_request *q, http_reply *r,
                                 ggl_error *err) {
    static const shape_row rows[] = {
        {"filename", SHAPE_STRING, offsetof(slot_body, filename), NULL},
        {"model", SHAPE_STRING, offsetof(slot_body, model), NULL},
        {0}};
    ignored_fields ignored = {.strict = x->s->facts.strict_fields};
    slot_body body;
    llm_json *doc = NULL;
    if (x->action == SLOT_ERASE)
        return GGL_OK;
    ggl_status st = llm_json_parse(&doc, q->body.s, q->body.n, "request", err);
    if (st == GGL_OK)
        st = read_shape(&body, sizeof body, &ignored, &doc->root, rows, err);
    if (st == GGL_OK)
        st = slot_read_name(x, body.filename, err);
    server_say_ignored(x->s, &ignored, q, r);
    llm_json_free(doc);
    return st;
}

static void fail_slot(server *s, bool is_busy, ggl_status st, const ggl_error *err,
                      const http_request *q, http_reply *r) {
    static const api_error off = {
        .status = 501,
        .type = "unsupported",
        .message = "slots are not saved, restored or erased by requests; start the server with "
                   "--slot-save-path DIR"};
    static const api_error busy = {
        .status = 503,
        .type = "overloaded",
        .message = "an answer is being written in this slot; try again when it has ended"};
    api_error e = is_busy ? busy : !s->o->slot_path ? off : api_error_of(st, err, NULL);
    if (e.status == 404) { /* of the file, not of the path */
        e.status = 400;
        e.type = "invalid_request";
    }
    server_count(s, COUNT_ERRORS);
    answer_error(request_errors(q), &e, r);
}

void admin_slot(server *s, const http_request *q, http_reply *r) {
    slot_request x = {.s = s, .memory = models_memory(model_table(s->model_row))};
    ggl_error err = {0};
    ggl_status st = s->o->slot_path ? GGL_OK : GGL_UNSUPPORTED;
    if (st == GGL_OK && s->facts.hears)
        st = ggl_fail(&err, GGL_UNSUPPORTED, "a model that hears keeps nothing of a sound");
    if (st == GGL_OK)
        st = slot_read_target(&x, q->path, q->parameter(q, "action"), &err);
    if (st == GGL_OK)
        st = read_slot_body(&x, q, r, &err);
    if (st == GGL_OK && !server_on_engine(s, slot_act, &x))
        st = ggl_fail(&err, GGL_CANCELLED, "the server is ending");
    if (st == GGL_OK && x.status != GGL_OK) {
        st = x.status;
        err = x.err;
    }
    if (st == GGL_OK && !x.is_busy) {
        llm_json_out out = {0};
        slot_put_result(&x, &out);
        admin_send(&out, q, r);
    } else {
        fail_slot(s, x.is_busy, st, &err, q, r);
    }
    ggl_free(x.path);
}

bool admin_slot_unloaded(model *m, const http_request *q, http_reply *r) {
    ggl_error err;
    const char *action = q->parameter(q, "action");
    if (!model_options(m)->slot_path || !action || strcmp(action, "save") != 0)
        return false;
    const ggl_status st = ggl_fail(&err, GGL_USAGE, "the slot is empty: the model is not loaded");
    answer_failed(request_errors(q), st, &err, NULL, r);
    return true;
}

/* --- streams that are resumed ----------------------------------------------------------------- */

static void fail_stream(models *t, ggl_status st, const ggl_error *err, const char *param,
                        const http_request *q, http_reply *r) {
    models_count(t, NULL, COUNT_ERRORS);
    answer_failed(request_errors(q), st, err, param, r);
}

/* The parameter conv_id; after an error NULL. */
static const char *stream_id(models *t, const http_request *q, http_reply *r) {
    ggl_error err;
    const char *id = q->parameter(q, "conv_id");
    if (id && *id)
        return id;
    fail_stream(t,
                ggl_fail(&err, GGL_USAGE,
                         "?conv_id= is missing: what the request's header X-Conversation-Id said"),
                &err, "conv_id", q, r);
    return NULL;
}

void admin_stream(models *t, const http_request *q, http_reply *r) {
    ggl_error err = {0};
    const char *id = stream_id(t, q, r);
    if (!id)
        return; /* the request is gone, as its answer has ended */
    const char *from = q->parameter(q, "from");
    const size_t n = from ? strlen(from) : 0;
    ggl_status st =
        n == 0 || (n <= 18 && strspn(from, "0123456789") == n)
            ? GGL_OK
            : ggl_fail(&err, GGL_USAGE, "?from= must be the number of a byte, not \"%.30s\"", from);
    if (st == GGL_OK)
        st = streams_read(models_streams(t), id, models_client(t, q),
                          n ? strtoull(from, NULL, 10) : 0, r, &err);
    if (st != GGL_OK)
        fail_stream(t, st, &err, st == GGL_NOT_FOUND ? "conv_id" : "from", q, r);
}

void admin_stream_cancel(models *t, const http_request *q, http_reply *r) {
    const char *id = stream_id(t, q, r);
    if (!id)
        return;
    streams_cancel(models_streams(t), id, models_client(t, q));
    http_reply_begin(r, 204, "", false);
    http_reply_end(r);
}

/* The streams of ids that the client knows. */
void admin_streams(models *t, const http_request *q, http_reply *r) {
    ggl_error err = {0};
    llm_json *doc = NULL;
    llm_json_out out = {0};
    size_t n = 0;
    ggl_status st = llm_json_parse(&doc, q->body.s, q->body.n, "request", &err);
    const json_value *list =
        st == GGL_OK ? llm_json_get_kind(&doc->root, "conversation_ids", JSON_ARRAY) : NULL;
    if (st == GGL_OK && (!list || list->n > MOST_LOOKUPS))
        st = ggl_fail(&err, GGL_USAGE, "\"conversation_ids\" must be a list of at most %d strings",
                      (int)MOST_LOOKUPS);
    llm_json_put_text(&out, "[");
    for (uint32_t i = 0; st == GGL_OK && i < list->n; i++)
        if (list->item[i].kind == JSON_STRING)
            streams_describe(models_streams(t), json_str(&list->item[i]), models_client(t, q), &out,
                             &n);
    llm_json_put_text(&out, "]");
    if (st == GGL_OK) {
        admin_send(&out, q, r);
    } else {
        ggl_free(out.s);
        fail_stream(t, st, &err, "conversation_ids", q, r);
    }
    llm_json_free(doc);
}
