/* OpenAI's /v1/embeddings. */
#include <stdio.h>

#include "api_openai.h"
#include "api_prompt.h"
#include "server.h"

/* --- requests ----------------------------------------------------------------------------------- */

ggl_status openai_field_input(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    return prompt_read_all(a, v, "input", facts, err);
}

ggl_status openai_field_encoding(ask *a, const json_value *v, const server_facts *facts,
                                 ggl_error *err) {
    (void)facts;
    openai_own_of(a)->base64 = llm_json_is(v, "base64");
    if (llm_json_is(v, "base64") || llm_json_is(v, "float"))
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE, "\"encoding_format\" must be \"float\" or \"base64\"");
}

ggl_status openai_field_dimensions(ask *a, const json_value *v, const server_facts *facts,
                                   ggl_error *err) {
    if (facts->n_embd == 0) /* answered by 501 */
        return GGL_OK;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < 1 || v->number > (double)facts->n_embd)
        return ggl_fail(err, GGL_USAGE,
                        "\"dimensions\" must be a number from 1 to %lld, which embeddings of this "
                        "model have",
                        (long long)facts->n_embd);
    a->n_dims = (int64_t)v->number;
    return GGL_OK;
}

/* Copies a name to the arena. */
static ggl_status read_name(ask *a, const json_value *v, const char *name, const char **out,
                            ggl_error *err) {
    if (v->kind == JSON_STRING && v->n == 0) /* as if it were absent */
        return GGL_OK;
    if (v->kind != JSON_STRING || v->n > 100 || memchr(v->s, 0, v->n))
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be a name of 1 to 100 bytes", name);
    *out = ggl_arena_strndup(&a->arena, v->s, v->n);
    return *out ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

/* Jina's: "retrieval.query". */
ggl_status openai_field_task(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)facts;
    return read_name(a, v, "task", &a->task, err);
}

/* Text Embeddings Inference's: "query". */
ggl_status openai_field_prompt_name(ask *a, const json_value *v, const server_facts *facts,
                                    ggl_error *err) {
    (void)facts;
    return read_name(a, v, "prompt_name", &a->prompt_name, err);
}

/* As of /tokenize: whether what looks like a special token in a text is one. */
ggl_status openai_field_parse_special(ask *a, const json_value *v, const server_facts *facts,
                                      ggl_error *err) {
    (void)facts;
    a->no_parse_special = v->kind == JSON_BOOL && !v->flag;
    return v->kind == JSON_BOOL
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "\"parse_special\" must be true or false");
}

static const field fields[] = {{"model", FIELD_FN, .fn = openai_field_model},
                               {"input", FIELD_FN, .fn = openai_field_input},
                               {"encoding_format", FIELD_FN, .fn = openai_field_encoding},
                               {"dimensions", FIELD_FN, .fn = openai_field_dimensions},
                               {"task", FIELD_FN, .fn = openai_field_task},
                               {"prompt_name", FIELD_FN, .fn = openai_field_prompt_name},
                               {"truncate", FIELD_BOOL, .at = FIELD_AT(truncates)},
                               {"parse_special", FIELD_FN, .fn = openai_field_parse_special},
                               {"user", .kind = FIELD_IGNORED},
                               {0}};

ggl_status openai_read_embeddings(ask *a, const field *table, const char *name,
                                  const server_facts *facts, const char **param, ggl_error *err) {
    *param = NULL;
    ggl_status st = openai_begin(a, ASK_EMBED, err);
    a->talk_name = name;
    if (st == GGL_OK)
        st = read_fields(a, &a->doc->root, table, facts, param, err);
    if (st == GGL_OK && a->n_prompts == 0) {
        *param = name;
        st = ggl_fail(err, GGL_USAGE, "\"%s\" is missing: the text to be embedded", name);
    }
    return st;
}

static ggl_status read_embeddings(ask *a, const server_facts *facts, const char **param,
                                  ggl_error *err) {
    const ggl_status st = openai_read_embeddings(a, fields, "input", facts, param, err);
    return st == GGL_OK ? embed_needs_pooling(facts, err) : st;
}

/* --- answers ------------------------------------------------------------------------------------ */

void openai_put_floats(const float *f, int64_t n, llm_json_out *out) {
    llm_json_put_text(out, "[");
    for (int64_t i = 0; i < n; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s%.9g", i > 0 ? "," : "", (double)f[i]);
        llm_json_put_text(out, text);
    }
    llm_json_put_text(out, "]");
}

/* Byte i of the floats in little-endian order. */
static unsigned byte_of(const float *f, size_t i) {
    uint32_t bits;
    memcpy(&bits, &f[i / 4], sizeof bits);
    return bits >> 8 * (i % 4) & 0xff;
}

static void put_base64(const float *f, int64_t n, llm_json_out *out) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t n_bytes = 4 * (size_t)n;
    llm_json_put_text(out, "\"");
    for (size_t i = 0; i < n_bytes; i += 3) {
        const unsigned b = byte_of(f, i) << 16 | (i + 1 < n_bytes ? byte_of(f, i + 1) : 0) << 8 |
                           (i + 2 < n_bytes ? byte_of(f, i + 2) : 0);
        const char four[] = {digit[b >> 18], digit[b >> 12 & 63],
                             i + 1 < n_bytes ? digit[b >> 6 & 63] : '=',
                             i + 2 < n_bytes ? digit[b & 63] : '='};
        llm_json_put(out, four, sizeof four);
    }
    llm_json_put_text(out, "\"");
}

void openai_embeddings_whole(const answer *x, llm_json_out *out) {
    const int64_t n_embd = x->facts->n_embd;
    llm_json_put_text(out, "{\"object\":\"list\",\"data\":[");
    for (int i = 0; i < x->n_choices; i++) {
        llm_json_put_text(out, i > 0 ? ",{\"object\":\"embedding\",\"index\":"
                                     : "{\"object\":\"embedding\",\"index\":");
        llm_json_format(out, "%d,'embedding':", i);
        (openai_own_of(x->ask)->base64 ? put_base64 : openai_put_floats)(x->embedding + i * n_embd,
                                                                         answer_dims(x), out);
        llm_json_put_text(out, "}");
    }
    llm_json_put_text(out, "],\"model\":");
    openai_put_model(x, out);
    llm_json_format(out, ",'usage':{'prompt_tokens':%lld,'total_tokens':%lld}}",
                    (long long)x->counts.n_prompt, (long long)x->counts.n_prompt);
}

const dialect api_openai_embeddings = {.name = "openai_embeddings",
                                       .fields = fields,
                                       .read = read_embeddings,
                                       .whole = openai_embeddings_whole,
                                       .error = openai_error};
