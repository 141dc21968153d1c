/* The list of models in OpenAI's form, with what llama.cpp's server adds to it, and loading and unloading. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "admin.h"
#include "api_pieces.h"
#include "api_shape.h"
#include "endpoints.h"
#include "ggl/internal/os_clock.h"
#include "server_impl.h"

llm_senses admin_senses(model *m, const server *s) {
    return s ? server_senses(&s->facts) : model_get_status(m).has;
}

/* As llama.cpp's lists of models say that one sees, and Ollama's that one hears. */
static void put_senses(llm_json_out *out, llm_senses has) {
    if (has.sees || has.hears)
        llm_json_format(out, ", 'capabilities': ['completion'%s%s]",
                        has.sees ? ", \"multimodal\"" : "", has.hears ? ", \"audio\"" : "");
}

static void put_status(llm_json_out *out, model *m) {
    const model_status x = model_get_status(m);
    llm_json_format(out, ", 'status': {'value': '%s'", model_state_names[x.state]);
    if (x.has_failed)
        llm_json_format(out, ", 'failed': true, 'exit_code': 1, 'error': %.*s",
                        LLM_JSON_TEXT(x.error));
    llm_json_put_text(out, "}");
}

/* Writes a list such as "a,b" as an array. */
static void put_names(llm_json_out *out, const char *list) {
    llm_json_put_text(out, "[");
    for (const char *at = list; at && *at; at += strspn(at, ", ")) {
        const size_t n = strcspn(at, ",");
        llm_json_put_text(out, at > list ? ", " : "");
        llm_json_put_string(out, (ggl_str){at, n});
        at += n;
    }
    llm_json_put_text(out, "]");
}

/* What is known of a model that is not loaded. */
static void put_card(llm_json_out *out, const model *m) {
    const model_card *c = model_get_card(m);
    if (!c->is_known) {
        llm_json_put_text(out, "null");
        return;
    }
    llm_json_format(out, "{'architecture': %.*s, 'n_params': %.0f, 'size': %.0f}",
                    LLM_JSON_TEXT(c->family), c->n_params, c->size);
}

/* The model with the members of OpenAI's, Anthropic's and llama.cpp's lists. */
static void put_model_object(llm_json_out *out, model *m) {
    server *s = model_peek(m);
    const server_options *o = model_options(m);
    const int64_t t = (int64_t)(s ? s->facts.t_start : model_get_modified(m));
    struct tm tm;
    char when[40] = "";
    if (ggl_os_utc_parts(t, &tm))
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    llm_json_format(out, "{'id': %.*s, 'aliases': ", LLM_JSON_TEXT(model_name(m)));
    put_names(out, o->alias ? o->alias : model_name(m));
    llm_json_put_text(out, ", \"tags\": ");
    put_names(out, o->tags);
    llm_json_format(out, ", 'type': 'model', 'display_name': %.*s, 'created_at': '%s'",
                    LLM_JSON_TEXT(model_name(m)), when);
    llm_json_format(
        out, ", \"object\": \"model\", \"created\": %" PRId64 ", \"owned_by\": \"llm-server\"",
        (int64_t)t);
    put_status(out, m);
    put_senses(out, admin_senses(m, s));
    if (s ? s->facts.hears : model_get_card(m)->hears)
        llm_json_put_text(out, ", \"architecture\": {\"input_modalities\": [\"audio\"], "
                               "\"output_modalities\": [\"text\"]}");
    llm_json_put_text(out, ", \"meta\": ");
    if (s)
        llm_json_put_text(out, server_model_info(s));
    else
        put_card(out, m);
    llm_json_put_text(out, "}");
    if (s)
        model_unpeek(s);
}

static void put_id(llm_json_out *out, const model *m) {
    if (m)
        admin_put_string(out, model_name(m));
    else
        llm_json_put_text(out, "null");
}

static bool wants_reload(const http_request *q) {
    const char *value = q->parameter(q, "reload");
    return value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

void admin_models(models *t, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    ggl_error err = {0};
    const ggl_status st = wants_reload(q) ? models_reload(t, &err) : GGL_OK;
    if (st != GGL_OK) {
        const api_error busy = {.status = 503, .type = "overloaded", .message = err.msg};
        if (st == GGL_LIMIT)
            answer_error(request_errors(q), &busy, r);
        else
            answer_failed(request_errors(q), st, &err, st == GGL_USAGE ? "reload" : NULL, r);
        return;
    }
    const model_list *l = models_get_list(t);
    llm_json_put_text(&out, "{\"object\": \"list\", \"data\": [");
    for (size_t i = 0; i < l->n; i++) {
        llm_json_put_text(&out, i > 0 ? ", " : "");
        put_model_object(&out, l->at[i]);
    }
    llm_json_put_text(&out, "], \"has_more\": false, \"first_id\": ");
    put_id(&out, l->n > 0 ? l->at[0] : NULL);
    llm_json_put_text(&out, ", \"last_id\": ");
    put_id(&out, l->n > 0 ? l->at[l->n - 1] : NULL);
    llm_json_put_text(&out, "}");
    admin_send(&out, q, r);
}

void admin_model(models *t, const http_request *q, http_reply *r) {
    const char *name = strstr(q->path, "/models/") + strlen("/models/");
    llm_json_out out = {0};
    ggl_error err = {0};
    model *m = models_find_named(t, name, &err);
    if (!m) {
        answer_failed(request_errors(q), err.status, &err, "model", r);
        return;
    }
    put_model_object(&out, m);
    admin_send(&out, q, r);
}

/* --- loading and unloading ---------------------------------------------------------------------- */

model *admin_find_named(const models *t, const http_request *q, ggl_error *err) {
    char *name = endpoint_model(q, err);
    model *m = name ? models_find_named(t, name, err) : NULL;
    if (!name && err->status == GGL_OK)
        (void)ggl_fail(err, GGL_USAGE, "\"model\" is missing");
    ggl_free(name);
    return m;
}

/* Returns the model that the body names; NULL: it was answered with an error. */
static model *named(models *t, const http_request *q, http_reply *r) {
    static const shape_row rows[] = {{"model", SHAPE_STRING | SHAPE_REQUIRED, 0, NULL}, {0}};
    const json_value *value[1];
    ignored_fields ignored = {.strict = models_options(t)->strict_fields};
    ggl_error err = {0};
    llm_json *doc = NULL;
    model *m = NULL;
    ggl_status st = llm_json_parse(&doc, q->body.s, q->body.n, "request", &err);
    if (st == GGL_OK)
        st = read_shape(value, sizeof value, &ignored, &doc->root, rows, &err);
    llm_json_free(doc);
    if (st == GGL_OK && !(m = admin_find_named(t, q, &err)))
        st = err.status;
    if (st != GGL_OK)
        answer_failed(request_errors(q), st, &err, "model", r);
    else
        models_say_ignored(t, &ignored, q, r);
    return m;
}

static void send_success(const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    llm_json_put_text(&out, "{\"success\": true}");
    admin_send(&out, q, r);
}

/* Answers at once; GET /models tells when the model is loaded. */
void admin_load(models *t, const http_request *q, http_reply *r) {
    model *m = named(t, q, r);
    if (!m)
        return;
    model_load(m);
    send_success(q, r);
}

void admin_unload(models *t, const http_request *q, http_reply *r) {
    model *m = named(t, q, r);
    ggl_error err = {0};
    if (!m)
        return;
    if (model_unload(m)) {
        send_success(q, r);
        return;
    }
    (void)ggl_fail(&err, GGL_USAGE, "the model %.64s is not loaded", model_name(m));
    answer_failed(request_errors(q), GGL_USAGE, &err, "model", r);
}
