/* The list of models and what is known of one, as Ollama's clients ask for it. */
#include "admin.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "abilities.h"
#include "api_pieces.h"
#include "api_shape.h"
#include "common/gguf_text.h"
#include "ggl/internal/number.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/text.h"
#include "server_impl.h"

#ifndef TOOLS_VERSION
#define TOOLS_VERSION "unknown"
#endif

/* The version of Ollama whose API this is. Clients demand a least one: Codex 0.13.4, for /v1/responses. */
#define OLLAMA_VERSION "0.32.15"

static void put_details(llm_json_out *out, const model_card *c) {
    const bool is_large = c->n_params >= 1e9;
    char type[32] = "";
    for (size_t i = 0; c->weight_type[i] && i + 1 < sizeof type; i++) {
        const char x = c->weight_type[i];
        type[i] = (char)(x >= 'a' && x <= 'z' ? x - 'a' + 'A' : x);
    }
    llm_json_format(out,
                    "{'parent_model': '', 'format': 'gguf', 'family': %.*s, 'families': [%.*s], "
                    "'parameter_size': '%.1f%s', 'quantization_level': '%s'",
                    LLM_JSON_TEXT(c->family), LLM_JSON_TEXT(c->family),
                    c->n_params / (is_large ? 1e9 : 1e6), is_large ? "B" : "M", type);
    if (c->n_ctx > 0)
        llm_json_format(out, ", 'context_length': %lld", (long long)c->n_ctx);
    if (c->n_embd > 0)
        llm_json_format(out, ", 'embedding_length': %lld", (long long)c->n_embd);
    llm_json_put_text(out, "}");
}

/* `["completion", "tools"]` */
static void put_capabilities(llm_json_out *out, const abilities *x) {
    const struct {
        bool is;
        const char *name;
    } rows[] = {{x->writes, "completion"},
                {x->writes && x->has_tools, "tools"},
                {x->writes && x->sees, "vision"},
                {x->writes && x->listens, "audio"},
                {x->writes && x->has_thinking, "thinking"},
                {x->embeds, "embedding"}};
    const char *before = "";
    llm_json_put_text(out, "[");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is) {
            llm_json_format(out, "%s'%s'", before, rows[i].name);
            before = ", ";
        }
    llm_json_put_text(out, "]");
}

/* Writes a time as RFC 3339 has it. */
static void put_time(llm_json_out *out, int64_t seconds) {
    struct tm tm;
    char text[40] = "";
    if (ggl_os_utc_parts(seconds, &tm))
        (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    admin_put_string(out, text);
}

static void put_model_row(llm_json_out *out, const char *name, const model_card *c) {
    llm_json_format(out, "'name': %.*s, 'model': %.*s", LLM_JSON_TEXT(name), LLM_JSON_TEXT(name));
    /* Clients expect the length of a SHA-256. */
    llm_json_format(out,
                    ", \"size\": %.0f, \"digest\": \"%016" PRIx64 "%048d\", \"details\": ", c->size,
                    c->digest, 0);
    put_details(out, c);
}

/* The card of the row, so that loading changes nothing of it; without a row, that of the model. s: may be NULL. */
static model_card card_of(const model *m, const server *s) {
    const model_card *own = model_get_card(m);
    return s && !own->is_known ? model_card_of(llm_model_file(llm_opened_model(s->ctx))) : *own;
}

void admin_ollama_tags(models *t, const http_request *q, http_reply *r) {
    const model_list *l = models_get_list(t);
    llm_json_out out = {0};
    llm_json_put_text(&out, "{\"models\": [");
    for (size_t i = 0; i < l->n; i++) {
        model *m = l->at[i];
        server *s = model_peek(m);
        const model_card c = card_of(m, s);
        llm_json_put_text(&out, i > 0 ? ", {" : "{");
        const abilities x = abilities_of(m, s);
        put_model_row(&out, model_name(m), &c);
        if (x.is_known) {
            llm_json_put_text(&out, ", \"capabilities\": ");
            put_capabilities(&out, &x);
        }
        llm_json_put_text(&out, ", \"modified_at\": ");
        put_time(&out, !s                    ? model_get_modified(m)
                       : models_is_single(t) ? s->facts.t_start
                                             : c.modified);
        llm_json_put_text(&out, "}");
        if (s)
            model_unpeek(s);
    }
    llm_json_put_text(&out, "]}");
    admin_send(&out, q, r);
}

/* The models that are loaded, and until when. */
void admin_ollama_ps(models *t, const http_request *q, http_reply *r) {
    const model_list *l = models_get_list(t);
    llm_json_out out = {0};
    bool is_first = true;
    llm_json_put_text(&out, "{\"models\": [");
    for (size_t i = 0; i < l->n; i++) {
        model *m = l->at[i];
        const model_status x = model_get_status(m);
        server *s = model_peek(m);
        if (!s)
            continue;
        const model_card c = card_of(m, s);
        llm_json_put_text(&out, is_first ? "{" : ", {");
        is_first = false;
        put_model_row(&out, model_name(m), &c);
        llm_json_put_text(&out, ", \"expires_at\": ");
        if (x.seconds_left >= 0)
            put_time(&out, (int64_t)time(NULL) + (int64_t)x.seconds_left);
        else
            llm_json_put_text(&out, "\"9999-12-31T23:59:59Z\"");
        llm_json_format(&out, ", \"size_vram\": 0, \"context_length\": %" PRId64 "}",
                        s->facts.n_ctx);
        model_unpeek(s);
    }
    llm_json_put_text(&out, "]}");
    admin_send(&out, q, r);
}

void admin_ollama_version(models *t, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    (void)t;
    llm_json_put_text(&out, "{\"version\": \"" OLLAMA_VERSION "\"}");
    admin_send(&out, q, r);
}

/* --- /api/show -------------------------------------------------------------------------------- */

/* Writes a key. Lists are null, as Ollama writes them unless asked for more: a vocabulary would be megabytes. */
static void put_key(llm_json_out *out, const ggl_gguf_value *v) {
    double x;
    ggl_str text;
    char number[NUMBER_TEXT];
    llm_json_format(out, "%.*s: ", LLM_JSON_STR(v->key));
    if (v->is_array)
        llm_json_put_text(out, "null");
    else if (ggl_gguf_string(v, 0, &text))
        llm_json_put_string(out, text);
    else if (v->type != GGL_GGUF_BOOL && ggl_gguf_number(v, 0, &x) && !isfinite(x))
        llm_json_put_text(out, "null");
    else
        llm_json_put_text(out, number_text(v, 0, 9, number));
}

/* What /api/show tells of a model. */
typedef struct shown {
    const ggl_gguf *file;
    ggl_str template_text;
    abilities can;
    int64_t modified;
    llm_sampler_params sampling; /* the defaults */
} shown;

/* Writes the defaults of sampling that a model's file may set, a line for each, as Ollama does. */
static void put_parameters(llm_json_out *out, const llm_sampler_params *p) {
    char text[80 * LLM_N_SAMPLING_KEYS] = "", number[GGL_NUMBER_TEXT];
    size_t used = 0;
    for (int i = 0; i < LLM_N_SAMPLING_KEYS; i++) {
        const llm_sampler_number *n = &llm_sampler_numbers[llm_sampling_keys[i].number];
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%-30s %s", i > 0 ? "\n" : "", n->field,
            ggl_number_shortest(number, llm_sampler_get_number(p, n), !n->is_int));
    }
    llm_json_format(out, "%.*s", LLM_JSON_TEXT(text));
}

static void put_show(llm_json_out *out, const shown *x) {
    const ggl_gguf *f = x->file;
    const model_card c = model_card_of(f);
    llm_json_put_text(out, "{\"license\": ");
    llm_json_put_string(out, text_of_key(f, "general.license"));
    llm_json_format(out, ", 'modelfile': '', 'parameters': ");
    put_parameters(out, &x->sampling);
    llm_json_format(out, ", 'template': %.*s, 'details': ", LLM_JSON_STR(x->template_text));
    put_details(out, &c);
    llm_json_put_text(out, ", \"model_info\": {");
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        llm_json_put_text(out, i ? ", " : "");
        put_key(out, ggl_gguf_value_at(f, i));
    }
    llm_json_put_text(out, "}, \"capabilities\": ");
    put_capabilities(out, &x->can);
    llm_json_put_text(out, ", \"modified_at\": ");
    put_time(out, x->modified);
    llm_json_put_text(out, "}");
}

/* Checks the body, of which only the model's name has a meaning. False: it was answered with an error. */
static bool read_show(const models *all, const http_request *q, http_reply *r) {
    static const shape_row rows[] = {{"model", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {"name", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {"verbose", SHAPE_BOOL | SHAPE_IGNORED, 0, NULL},
                                     {"system", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {"template", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {0}};
    llm_json *doc = NULL;
    ggl_error err = {0};
    const json_value *none[1]; /* no row has a place in it */
    ignored_fields ignored = {.strict = models_options(all)->strict_fields};
    ggl_status st = llm_json_parse(&doc, q->body.s, q->body.n, "request", &err);
    if (st == GGL_OK)
        st = read_shape(none, sizeof none, &ignored, &doc->root, rows, &err);
    llm_json_free(doc);
    if (st == GGL_OK && !admin_find_named(all, q, &err))
        st = err.status;
    if (st != GGL_OK)
        answer_failed(request_errors(q), st, &err, NULL, r);
    else
        models_say_ignored(all, &ignored, q, r);
    return st == GGL_OK;
}

void admin_ollama_show(server *s, const http_request *q, http_reply *r) {
    const shown x = {.file = llm_model_file(llm_opened_model(s->ctx)),
                     .template_text = llm_opened_chat(s->ctx)
                                          ? llm_chat_text(llm_opened_chat(s->ctx))
                                          : (ggl_str){"", 0},
                     .can = abilities_of_server(s),
                     .modified = s->facts.t_start,
                     .sampling = s->facts.sampling};
    llm_json_out out = {0};
    if (!read_show(model_table(s->model_row), q, r))
        return;
    put_show(&out, &x);
    admin_send(&out, q, r);
}

/* Programs that list models ask this of each: none is loaded for that. */
bool admin_ollama_show_file(model *m, const http_request *q, http_reply *r) {
    const server_options *o = model_options(m);
    const ggl_gguf_params p = {.size = sizeof p, .meta_only = true};
    ggl_gguf *f;
    ggl_error unread;
    llm_json_out out = {0};
    if (!model_get_card(m)->is_known || open_options_names_template(&o->open) ||
        ggl_gguf_open(&f, o->open.how.path, &p, &unread) != GGL_OK)
        return false;
    sampling_options sampling = o->sampling;
    llm_file_sampling defaults;
    llm_file_sampling_read(&defaults, llm_sampling_file(&o->open.how.params, f), NULL, NULL);
    sampling_options_resolve(&sampling, &defaults);
    const shown x = {.file = f,
                     .sampling = sampling_params(&sampling),
                     .template_text = text_of_key(f, "tokenizer.chat_template"),
                     .can = abilities_of(m, NULL),
                     .modified = model_get_modified(m)};
    if (read_show(model_table(m), q, r)) {
        put_show(&out, &x);
        admin_send(&out, q, r);
    }
    ggl_gguf_close(f);
    return true;
}
