/* The list of models and what is known of one, as Ollama's clients ask for it. */
#include "admin.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "api_pieces.h"
#include "api_shape.h"
#include "common/gguf_text.h"
#include "server_impl.h"

#ifndef TOOLS_VERSION
#define TOOLS_VERSION "unknown"
#endif

static ggl_str find_string(const ggl_gguf *f, const char *key) {
    ggl_error err;
    ggl_str x = {"", 0};
    (void)ggl_gguf_get_string(f, key, &x, &err);
    return x;
}

/* All weights: the type that has most of the bytes, their number, and their bytes. */
typedef struct weights {
    const char *type;
    double n, size;
} weights;

static weights count_weights(const ggl_gguf *f) {
    double of_type[256] = {0};
    weights w = {"", 0, 0};
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        double n = 1;
        for (int d = 0; d < t->n_dims; d++)
            n *= (double)t->ne[d];
        w.n += n;
        w.size += (double)t->size;
        of_type[(unsigned)t->type % 256] += (double)t->size;
    }
    int best = 0;
    for (int i = 1; i < 256; i++)
        best = of_type[i] > of_type[best] ? i : best;
    const ggl_type_info *info = ggl_type_get(best);
    w.type = info ? info->name : "";
    return w;
}

static void put_details(llm_json_out *out, const server *s) {
    const ggl_gguf *f = llm_model_file(s->model);
    const weights w = count_weights(f);
    const ggl_str family = find_string(f, "general.architecture");
    const bool is_large = w.n >= 1e9;
    char type[32] = "";
    for (size_t i = 0; w.type[i] && i + 1 < sizeof type; i++)
        type[i] = (char)(w.type[i] >= 'a' && w.type[i] <= 'z' ? w.type[i] - 'a' + 'A' : w.type[i]);
    llm_json_put_text(out, "{\"parent_model\": \"\", \"format\": \"gguf\", \"family\": ");
    llm_json_put_string(out, family);
    llm_json_put_text(out, ", \"families\": [");
    llm_json_put_string(out, family);
    put_format(out, "], \"parameter_size\": \"%.1f%s\", \"quantization_level\": \"%s\"}",
               w.n / (is_large ? 1e9 : 1e6), is_large ? "B" : "M", type);
}

/* Writes a time as RFC 3339 has it. */
static void put_time(llm_json_out *out, int64_t seconds) {
    const time_t t = (time_t)seconds;
    struct tm tm;
    char text[40] = "";
    if (gmtime_r(&t, &tm))
        (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    admin_put_string(out, text);
}

static void put_model_row(llm_json_out *out, const server *s) {
    const ggl_gguf *f = llm_model_file(s->model);
    llm_json_put_text(out, "\"name\": ");
    admin_put_string(out, s->facts.model);
    llm_json_put_text(out, ", \"model\": ");
    admin_put_string(out, s->facts.model);
    /* Clients expect the length of a SHA-256. */
    put_format(out, ", \"size\": %.0f, \"digest\": \"%016" PRIx64 "%048d\", \"details\": ",
               count_weights(f).size, ggl_gguf_digest(f), 0);
    put_details(out, s);
}

void admin_ollama_tags(server *s, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    (void)q;
    llm_json_put_text(&out, "{\"models\": [{");
    put_model_row(&out, s);
    llm_json_put_text(&out, ", \"modified_at\": ");
    put_time(&out, s->facts.t_start);
    llm_json_put_text(&out, "}]}");
    admin_send(&out, r);
}

/* The model stays in memory as long as the server runs. */
void admin_ollama_ps(server *s, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    (void)q;
    llm_json_put_text(&out, "{\"models\": [{");
    put_model_row(&out, s);
    put_format(&out,
               ", \"expires_at\": \"9999-12-31T23:59:59Z\", \"size_vram\": 0, "
               "\"context_length\": %" PRId64 "}]}",
               s->facts.n_ctx);
    admin_send(&out, r);
}

void admin_ollama_version(server *s, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    (void)s;
    (void)q;
    /* Clients demand a least version: this is the one that brought the last of the fields that are read here. */
    llm_json_put_text(&out, "{\"version\": \"0.12.11\"}");
    admin_send(&out, r);
}

/* --- /api/show -------------------------------------------------------------------------------- */

/* Writes a key. Lists are null, as Ollama writes them unless asked for more: a vocabulary would be megabytes. */
static void put_key(llm_json_out *out, const ggl_gguf_value *v) {
    double x;
    ggl_str text;
    char number[NUMBER_TEXT];
    llm_json_put_string(out, v->key);
    llm_json_put_text(out, ": ");
    if (v->is_array)
        llm_json_put_text(out, "null");
    else if (ggl_gguf_string(v, 0, &text))
        llm_json_put_string(out, text);
    else if (v->type != GGL_GGUF_BOOL && ggl_gguf_number(v, 0, &x) && !isfinite(x))
        llm_json_put_text(out, "null");
    else
        llm_json_put_text(out, number_text(v, 0, 9, number));
}

static void put_capabilities(llm_json_out *out, const server *s) {
    const llm_template *t = s->chat ? llm_chat_get_template(s->chat) : NULL;
    llm_json_put_text(out, "[\"completion\"");
    if (t && llm_template_mentions(t, "tools"))
        llm_json_put_text(out, ", \"tools\"");
    if (t && llm_template_mentions(t, "enable_thinking"))
        llm_json_put_text(out, ", \"thinking\"");
    if (s->facts.n_embd > 0)
        llm_json_put_text(out, ", \"embedding\"");
    llm_json_put_text(out, "]");
}

static void put_show(llm_json_out *out, const server *s) {
    const ggl_gguf *f = llm_model_file(s->model);
    llm_json_put_text(out, "{\"license\": ");
    llm_json_put_string(out, find_string(f, "general.license"));
    llm_json_put_text(out, ", \"modelfile\": \"\", \"parameters\": \"\", \"template\": ");
    llm_json_put_string(out, s->chat ? llm_chat_text(s->chat) : (ggl_str){"", 0});
    llm_json_put_text(out, ", \"details\": ");
    put_details(out, s);
    llm_json_put_text(out, ", \"model_info\": {");
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        llm_json_put_text(out, i ? ", " : "");
        put_key(out, ggl_gguf_value_at(f, i));
    }
    llm_json_put_text(out, "}, \"capabilities\": ");
    put_capabilities(out, s);
    llm_json_put_text(out, ", \"modified_at\": ");
    put_time(out, s->facts.t_start);
    llm_json_put_text(out, "}");
}

/* The model's name selects nothing: there is one. */
void admin_ollama_show(server *s, const http_request *q, http_reply *r) {
    static const shape_row rows[] = {{"model", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {"name", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {"verbose", SHAPE_BOOL | SHAPE_IGNORED, 0, NULL},
                                     {"system", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {"template", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {0}};
    llm_json_out out = {0};
    llm_json *doc = NULL;
    ggl_error err = {0};
    const json_value *none[1]; /* no row has a place in it */
    ignored_fields ignored = {.strict = s->facts.strict_fields};
    ggl_status st = llm_json_parse(&doc, q->body.s, q->body.n, "request", &err);
    if (st == GGL_OK)
        st = read_shape(none, sizeof none, &ignored, &doc->root, rows, &err);
    llm_json_free(doc);
    if (st != GGL_OK) {
        answer_failed(&api_ollama_chat, st, &err, NULL, r);
        return;
    }
    server_say_ignored(s, &ignored, q, r);
    put_show(&out, s);
    admin_send(&out, r);
}
