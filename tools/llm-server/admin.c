/* The server's state in the form of llama.cpp's server, and the list of models in OpenAI's. */
#include "admin.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "api_pieces.h"
#include "server_impl.h"

#ifndef TOOLS_VERSION
#define TOOLS_VERSION "unknown"
#endif

void admin_send(llm_json_out *out, http_reply *r) {
    if (out->failed || out->n == 0) {
        const api_error e = api_error_of(GGL_NOMEM, NULL, NULL);
        answer_error(&api_openai_chat, &e, r);
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

void admin_health(server *s, const http_request *q, http_reply *r) {
    static const char ok[] = "{\"status\": \"ok\"}",
                      loading[] = "{\"error\": {\"code\": 503, \"message\": \"Loading model\", "
                                  "\"type\": \"unavailable_error\"}}";
    const bool is_ready = s->is_ready;
    (void)q;
    http_reply_begin(r, is_ready ? 200 : 503, "application/json", false);
    http_reply_write(r, is_ready ? ok : loading, is_ready ? sizeof ok - 1 : sizeof loading - 1);
    http_reply_end(r);
}

/* --- /props ----------------------------------------------------------------------------------- */

static void put_token(llm_json_out *out, const char *name, const server *s, int32_t id) {
    put_format(out, ", \"%s\": ", name);
    llm_json_put_string(out, llm_token_piece(s->tokenizer, id));
}

/* Writes the defaults of requests. */
static void put_defaults(llm_json_out *out, const server *s) {
    const server_facts *f = &s->facts;
    put_format(
        out,
        "{\"id\": 0, \"id_task\": -1, \"n_ctx\": %" PRId64
        ", \"speculative\": %s, \"is_processing\": false, \"params\": {\"n_predict\": %" PRId64
        ", \"max_tokens\": %" PRId64 ", \"seed\": %" PRId64 ", ",
        f->n_ctx, s->speculation ? "true" : "false", f->n_predict, f->n_predict, s->o->seed);
    put_sampling(out, &f->sampling);
    llm_json_put_text(out,
                      ", \"stop\": [], \"n_keep\": 0, \"n_discard\": 0, \"ignore_eos\": false, "
                      "\"stream\": true, \"n_probs\": 0, \"min_keep\": 0, \"grammar\": \"\"}}");
}

void admin_props(server *s, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    (void)q;
    llm_json_put_text(&out, "{\"default_generation_settings\": ");
    put_defaults(&out, s);
    put_format(&out, ", \"total_slots\": %" PRId64 ", \"model_path\": ", s->o->n_parallel);
    admin_put_string(&out, s->facts.model_path);
    llm_json_put_text(&out, ", \"model_alias\": ");
    admin_put_string(&out, s->facts.model);
    llm_json_put_text(&out, ", \"chat_template\": ");
    llm_json_put_string(&out, s->chat ? llm_chat_text(s->chat) : (ggl_str){"", 0});
    put_token(&out, "bos_token", s, llm_tokenizer_bos(s->tokenizer));
    put_token(&out, "eos_token", s, llm_tokenizer_eos(s->tokenizer));
    llm_json_put_text(&out, ", \"build_info\": \"ggml-lite " TOOLS_VERSION
                            "\", \"modalities\": {\"vision\": false, \"audio\": false}}");
    admin_send(&out, r);
}

/* --- /slots ----------------------------------------------------------------------------------- */

typedef struct slots_ctx {
    server *s;
    llm_json_out out;
} slots_ctx;

static void put_slot(llm_json_out *out, const server *s, const llm_slot_info *i, int slot) {
    static const char *const uses[] = {[LLM_SLOT_EMPTY] = "empty",
                                       [LLM_SLOT_KEPT] = "kept",
                                       [LLM_SLOT_PROMPT] = "prompt",
                                       [LLM_SLOT_GENERATES] = "generates"};
    const bool runs = i->use == LLM_SLOT_PROMPT || i->use == LLM_SLOT_GENERATES;
    put_format(out,
               "%s{\"id\": %d, \"id_task\": %" PRId64 ", \"n_ctx\": %" PRId64
               ", \"speculative\": %s, \"is_processing\": %s, \"use\": \"%s\", \"n_past\": %" PRId64
               ", \"n_shared\": %" PRId64,
               slot ? ", " : "", slot, i->id ? (int64_t)i->id : -1, s->facts.n_ctx,
               s->speculation ? "true" : "false", runs ? "true" : "false", uses[i->use], i->n_past,
               i->n_shared);
    if (runs)
        put_format(out,
                   ", \"n_prompt\": %" PRId64 ", \"n_reused\": %" PRId64
                   ", \"next_token\": [{\"has_next_token\": true, \"n_decoded\": %" PRId64 "}]",
                   i->stats.n_prompt, i->stats.n_reused, i->stats.n_drawn);
    llm_json_put_text(out, "}");
}

static void put_slots(void *ctx, llm_engine *e) {
    slots_ctx *c = ctx;
    llm_json_put_text(&c->out, "[");
    for (int i = 0; i < (int)c->s->params.n_slots; i++) {
        const llm_slot_info info = llm_engine_slot(e, i);
        put_slot(&c->out, c->s, &info, i);
    }
    llm_json_put_text(&c->out, "]");
}

void admin_slots(server *s, const http_request *q, http_reply *r) {
    slots_ctx c = {.s = s};
    (void)q;
    c.out.failed = !server_on_engine(s, put_slots, &c);
    admin_send(&c.out, r);
}

/* --- models ----------------------------------------------------------------------------------- */

/* Writes a list such as "a,b" as an array. */
static void put_names(llm_json_out *out, const char *list) {
    llm_json_put_text(out, "[");
    for (const char *at = list; at && *at; at += strspn(at, ",")) {
        const size_t n = strcspn(at, ",");
        llm_json_put_text(out, at > list ? ", " : "");
        llm_json_put_string(out, (ggl_str){at, n});
        at += n;
    }
    llm_json_put_text(out, "]");
}

/* The model with the members of OpenAI's, Anthropic's and llama.cpp's lists. */
static void put_model_object(llm_json_out *out, const server *s) {
    const time_t t = (time_t)s->facts.t_start;
    struct tm tm;
    char when[40] = "";
    if (gmtime_r(&t, &tm))
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    llm_json_put_text(out, "{\"id\": ");
    admin_put_string(out, s->facts.model);
    llm_json_put_text(out, ", \"aliases\": ");
    put_names(out, s->o->alias ? s->o->alias : s->facts.model);
    llm_json_put_text(out, ", \"tags\": ");
    put_names(out, s->o->tags);
    llm_json_put_text(out, ", \"type\": \"model\", \"display_name\": ");
    admin_put_string(out, s->facts.model);
    put_format(out, ", \"created_at\": \"%s\"", when);
    put_format(out,
               ", \"object\": \"model\", \"created\": %" PRId64 ", \"owned_by\": \"llm-server\"",
               s->facts.t_start);
    llm_json_put_text(out, ", \"meta\": ");
    llm_json_put_text(out, server_model_info(s));
    llm_json_put_text(out, "}");
}

void admin_models(server *s, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    (void)q;
    llm_json_put_text(&out, "{\"object\": \"list\", \"data\": [");
    put_model_object(&out, s);
    llm_json_put_text(&out, "], \"has_more\": false, \"first_id\": ");
    admin_put_string(&out, s->facts.model);
    llm_json_put_text(&out, ", \"last_id\": ");
    admin_put_string(&out, s->facts.model);
    llm_json_put_text(&out, "}");
    admin_send(&out, r);
}

static bool has_alias(const server *s, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = s->o->alias; at && *at; at += strspn(at, ",")) {
        const size_t size = strcspn(at, ",");
        if (size == n && memcmp(at, name, n) == 0)
            return true;
        at += size;
    }
    return false;
}

void admin_model(server *s, const http_request *q, http_reply *r) {
    const char *name = strstr(q->path, "/models/") + strlen("/models/");
    llm_json_out out = {0};
    ggl_error err = {0};
    if (strcmp(name, s->facts.model) != 0 && !has_alias(s, name)) {
        const ggl_status st =
            ggl_fail(&err, GGL_NOT_FOUND, "there is no model %.100s; this server has %s", name,
                     s->facts.model);
        answer_failed(&api_openai_chat, st, &err, "model", r);
        return;
    }
    put_model_object(&out, s);
    admin_send(&out, r);
}
