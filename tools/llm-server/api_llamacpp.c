/* llama.cpp's /completion and /infill. */
#include "api_fim.h"
#include "api_images.h"
#include "api_openai.h"
#include "api_prompt.h"
#include "api_pieces.h"
#include "api_shape.h"

#include <math.h>

#include "ggl/internal/text.h"

/* What a request says besides the ask: ask.own. */
typedef struct own_ask {
    const json_value *prompt;
    ggl_str prefix, suffix;  /* /infill */
    const json_value *extra; /* the same: a list; NULL: none */
    const char **wanted;     /* [n_wanted] response_fields: paths such as "timings/prompt_ms" */
    size_t n_wanted;
    bool timings;      /* in each piece of a stream */
    bool *has_newline; /* [choice]: the text of the stream had a line break */
} own_ask;

static own_ask *own_of(ask *a) {
    return a->own;
}

/* --- prompts ------------------------------------------------------------------------------------ */

static ggl_status read_prompts(ask *a, const server_facts *facts, ggl_error *err) {
    const json_value *v = own_of(a)->prompt;
    return v ? prompt_read_all(a, v, "prompt", facts, err)
             : ggl_fail(err, GGL_USAGE, "\"prompt\" is missing");
}

/* --- fields ------------------------------------------------------------------------------------- */

static ggl_status take_prompt(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    (void)err;
    own_of(a)->prompt = v;
    return GGL_OK;
}

static ggl_status read_timings(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_BOOL)
        return ggl_fail(err, GGL_USAGE, "\"timings_per_token\" must be true or false");
    own_of(a)->timings = v->flag;
    return GGL_OK;
}

static ggl_status read_wanted(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    own_ask *own = a->own;
    (void)facts;
    if (v->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE, "\"response_fields\" must be a list of names");
    own->wanted = ggl_arena_alloc(&a->arena, (size_t)v->n + 1, sizeof *own->wanted);
    if (!own->wanted)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    if (v->n > 64)
        return ggl_fail(err, GGL_LIMIT, "\"response_fields\" has %u names, but may have at most 64",
                        (unsigned)v->n);
    for (size_t i = 0; i < v->n; i++) {
        const json_value *name = &v->item[i];
        if (name->kind != JSON_STRING || name->n == 0 || name->n > 200)
            return ggl_fail(err, GGL_USAGE,
                            "\"response_fields\" must be a list of names such as "
                            "\"timings/prompt_ms\"");
        own->wanted[i] = ggl_arena_strndup(&a->arena, name->s, name->n);
        if (!own->wanted[i])
            return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    }
    own->n_wanted = v->n;
    return GGL_OK;
}

static ggl_status read_text(const json_value *v, const char *name, ggl_str *s, ggl_error *err) {
    if (v->kind != JSON_STRING)
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be a string, not %s", name,
                        llm_json_kind_text((json_kind)v->kind));
    *s = json_str(v);
    return GGL_OK;
}

static ggl_status read_prefix(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    return read_text(v, "input_prefix", &own_of(a)->prefix, err);
}

static ggl_status read_suffix(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    return read_text(v, "input_suffix", &own_of(a)->suffix, err);
}

static ggl_status read_extra(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE, "\"input_extra\" must be a list, not %s",
                        llm_json_kind_text((json_kind)v->kind));
    own_of(a)->extra = v;
    return GGL_OK;
}

static const field fields[] = {
#include "fields_sampling.def"
#include "fields_llamacpp.def"
#include "fields_completion.def"
    {0}};

static const field infill_fields[] = {
#include "fields_sampling.def"
#include "fields_llamacpp.def"
#include "fields_completion.def"
    {"input_prefix", FIELD_FN, .fn = read_prefix},
    {"input_suffix", FIELD_FN, .fn = read_suffix},
    {"input_extra", FIELD_FN, .fn = read_extra},
    {0}};

static ggl_status read_by(ask *a, const field *table, const server_facts *facts, const char **param,
                          ggl_error *err) {
    a->kind = ASK_TEXT;
    a->own = ggl_arena_alloc(&a->arena, 1, sizeof(own_ask));
    if (!a->own)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    const ggl_status st = read_fields(a, &a->doc->root, table, facts, param, err);
    a->return_tokens |= a->stream; /* streams have them always */
    return st;
}

/* Remembers which choices of a stream had a line break. */
static ggl_status make_newlines(ask *a, ggl_error *err) {
    if (!a->stream)
        return GGL_OK;
    own_of(a)->has_newline =
        ggl_arena_alloc(&a->arena, a->n_prompts * (size_t)a->n_choices, sizeof(bool));
    return own_of(a)->has_newline ? GGL_OK
                                  : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

static ggl_status read_completion(ask *a, const server_facts *facts, const char **param,
                                  ggl_error *err) {
    ggl_status st = read_by(a, fields, facts, param, err);
    if (st != GGL_OK)
        return st;
    *param = "prompt";
    st = read_prompts(a, facts, err);
    if (st == GGL_OK)
        st = make_newlines(a, err);
    if (st == GGL_OK)
        *param = NULL;
    return st;
}

static ggl_status read_infill(ask *a, const server_facts *facts, const char **param,
                              ggl_error *err) {
    const ggl_status st = read_by(a, infill_fields, facts, param, err);
    if (st != GGL_OK)
        return st;
    const own_ask *own = a->own;
    ggl_str begun = {"", 0};
    if (own->prompt && own->prompt->kind != JSON_STRING) {
        *param = "prompt";
        return ggl_fail(err, GGL_USAGE, "\"prompt\" must be a string: how the answer begins");
    }
    if (own->prompt)
        begun = json_str(own->prompt);
    *param = "input_extra";
    ggl_status made =
        fim_prompt(a, facts, &(fim_request){own->prefix, own->suffix, begun, own->extra}, err);
    if (made == GGL_OK)
        made = make_newlines(a, err);
    if (made == GGL_OK)
        *param = NULL;
    return made;
}

/* --- answers ------------------------------------------------------------------------------------ */

static void put_member_text(llm_json_out *out, const char *name, ggl_str s) {
    llm_json_format(out, ", '%s': %.*s", name, LLM_JSON_STR(s));
}

/* A token with its probability, as logarithm or, after sampling, as it is. */
static void put_probability(llm_json_out *out, const answer *x, int32_t id, ggl_str text,
                            double logprob) {
    llm_json_format(out, "{'id': %d, 'token': %.*s, 'bytes': ", (int)id, LLM_JSON_STR(text));
    put_bytes(out, text);
    if (x->ask->sampled_probs)
        llm_json_format(out, ", 'prob': %.17g", exp(logprob));
    else
        llm_json_put_text(out, ", \"logprob\": "), openai_put_double(out, logprob);
}

static void put_token(llm_json_out *out, const answer *x, const answer_token *t) {
    put_probability(out, x, t->id, t->text, t->logprob);
    llm_json_put_text(out, x->ask->sampled_probs ? ", \"top_probs\": [" : ", \"top_logprobs\": [");
    for (size_t k = 0; k < t->n_top; k++) {
        llm_json_put_text(out, k ? ", " : "");
        put_probability(out, x, t->top[k].id, token_text(x->facts, t->top[k].id),
                        t->top[k].logprob);
        llm_json_put_text(out, "}");
    }
    llm_json_put_text(out, "]}");
}

/* The members tokens and completion_probabilities of some parts. */
static void put_tokens(llm_json_out *out, const answer *x, const answer_part *part, size_t n) {
    bool first = true;
    llm_json_put_text(out, ", \"tokens\": [");
    for (size_t i = 0; x->ask->return_tokens && i < n; i++)
        for (size_t k = 0; k < part[i].n_tokens; k++, first = false)
            llm_json_format(out, first ? "%d" : ", %d", (int)part[i].token[k].id);
    llm_json_put_text(out, "]");
    if (x->ask->n_top < 0)
        return;
    first = true;
    llm_json_put_text(out, ", \"completion_probabilities\": [");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < part[i].n_tokens; k++, first = false) {
            llm_json_put_text(out, first ? "" : ", ");
            put_token(out, x, &part[i].token[k]);
        }
    llm_json_put_text(out, "]");
}

/* The text of an answer: all of its parts are content. */
static void put_content(llm_json_out *out, const answer_part *part, size_t n) {
    llm_json_put_text(out, ", \"content\": ");
    openai_put_texts(part, n, PART_CONTENT, out);
}

static void put_settings(llm_json_out *out, const answer *x, const answer_choice *c) {
    const ask *a = x->ask;
    llm_json_format(out, ", 'generation_settings': {'n_ctx': %lld, 'model': %.*s, 'seed': %llu, ",
                    (long long)x->facts->n_ctx, LLM_JSON_TEXT(x->facts->model),
                    (unsigned long long)c->seed);
    put_sampling(out, &a->sampling);
    llm_json_format(
        out,
        ", 'n_predict': %lld, 'max_tokens': %lld, 'n_keep': %lld, 'n_discard': 0, 'ignore_eos': "
        "%s, 'stream': %s, 'n_probs': %d, 'min_keep': 0, 'adaptive_target': -1, 'adaptive_decay': "
        "0.9, 'timings_per_token': %s, 'post_sampling_probs': %s",
        (long long)a->n_max, (long long)a->n_max, (long long)a->n_keep,
        a->ignore_eos ? "true" : "false", a->stream ? "true" : "false", a->n_top > 0 ? a->n_top : 0,
        ((const own_ask *)a->own)->timings ? "true" : "false", a->sampled_probs ? "true" : "false");
    put_member_text(out, "grammar", a->form == ASK_GBNF ? a->form_text : (ggl_str){"", 0});
    llm_json_put_text(out, ", \"lora\": [");
    for (size_t i = 0; i < x->n_scales; i++) {
        llm_json_format(out, "%s{'id': %zu, 'scale': ", i ? ", " : "", i);
        put_shortest(out, x->scale[i]);
        llm_json_put_text(out, "}");
    }
    llm_json_put_text(out, "], \"stop\": [");
    for (size_t i = 0; i < a->n_stops; i++)
        llm_json_format(out, "%s%.*s", i ? ", " : "", LLM_JSON_STR(a->stop[i]));
    llm_json_put_text(out, "]}");
}

/* True if these parts, or earlier ones of the stream, have a line break. */
static bool has_newline(const answer *x, const answer_choice *c, const answer_part *part,
                        size_t n) {
    const own_ask *own = x->ask->own;
    bool has = own->has_newline && own->has_newline[c->index];
    for (size_t i = 0; i < n && !has; i++)
        has = part[i].text.n > 0 && memchr(part[i].text.s, '\n', part[i].text.n);
    if (own->has_newline)
        own->has_newline[c->index] = has;
    return has;
}

static const char *stop_type(finish f) {
    return f == FINISH_STOP_STRING                 ? "word"
           : f == FINISH_STOP || f == FINISH_CALLS ? "eos"
                                                   : "limit";
}

/* The object that ends an answer; without a stream it has all of the text. */
static void put_final(llm_json_out *out, const answer *x, const answer_choice *c) {
    llm_json_format(out, "{'index': %d", c->index);
    put_content(out, c->part, x->ask->stream ? 0 : c->n_parts);
    put_tokens(out, x, c->part, x->ask->stream ? 0 : c->n_parts);
    llm_json_format(out, ", 'id_slot': %d, 'stop': true, 'model': ", c->slot);
    openai_put_model(x, out);
    llm_json_format(out,
                    ", 'tokens_predicted': %lld, 'tokens_evaluated': %lld, 'tokens_cached': %lld, "
                    "'has_new_line': %s, 'truncated': %s, 'stop_type': '%s'",
                    (long long)c->n_drawn, (long long)c->n_prompt, (long long)c->n_reused,
                    has_newline(x, c, c->part, c->n_parts) ? "true" : "false",
                    c->context_full || c->has_shifted ? "true" : "false", stop_type(c->finish));
    put_member_text(out, "stopping_word",
                    c->finish == FINISH_STOP_STRING ? c->stop : (ggl_str){"", 0});
    put_settings(out, x, c);
    put_member_text(out, "prompt", c->prompt.s ? c->prompt : (ggl_str){"", 0});
    llm_json_put_text(out, ", \"timings\": ");
    openai_put_timings(x, c, out);
    llm_json_put_text(out, "}");
}

/* Finds a value by a path of names with slashes between them. */
static const json_value *find_path(const json_value *v, const char *path) {
    char name[201];
    for (;;) {
        const size_t n = strcspn(path, "/");
        memcpy(name, path, n);
        name[n] = '\0';
        v = llm_json_get(v, name);
        if (!v || !path[n])
            return v;
        path += n + 1;
    }
}

/* Writes only the wanted members of an object. A path that does not exist is left out, as in llama.cpp. */
static void put_wanted(llm_json_out *out, const own_ask *own, const llm_json_out *all) {
    llm_json *doc;
    int n = 0;
    if (all->failed || llm_json_parse(&doc, all->s, all->n, "answer", NULL) != GGL_OK) {
        out->failed = true;
        return;
    }
    llm_json_put_text(out, "{");
    for (size_t i = 0; i < own->n_wanted; i++) {
        const char *path = own->wanted[i];
        const json_value *v = find_path(&doc->root, path);
        if (!v)
            continue;
        llm_json_format(out, "%s%.*s: ", n++ ? ", " : "", LLM_JSON_TEXT(path));
        llm_json_put_value(out, v);
    }
    llm_json_put_text(out, "}");
    llm_json_free(doc);
}

static void put_answer(llm_json_out *out, const answer *x, const answer_choice *c) {
    const own_ask *own = x->ask->own;
    llm_json_out all = {0};
    if (own->n_wanted == 0) {
        put_final(out, x, c);
        return;
    }
    put_final(&all, x, c);
    put_wanted(out, own, &all);
    ggl_free(all.s);
}

static void whole(const answer *x, llm_json_out *out) {
    llm_json_put_text(out, x->n_choices > 1 ? "[" : "");
    for (int i = 0; i < x->n_choices; i++) {
        llm_json_put_text(out, i ? ", " : "");
        put_answer(out, x, &x->choice[i]);
    }
    llm_json_put_text(out, x->n_choices > 1 ? "]" : "");
}

static void part(const answer *x, const answer_choice *c, const answer_part *p, llm_json_out *out) {
    (void)has_newline(x, c, p, 1);
    llm_json_format(out, "data: {'index': %d", c->index);
    put_content(out, p, 1);
    put_tokens(out, x, p, 1);
    llm_json_format(
        out, ", 'id_slot': %d, 'stop': false, 'tokens_predicted': %lld, 'tokens_evaluated': %lld",
        c->slot, (long long)c->n_drawn, (long long)c->n_prompt);
    if (((const own_ask *)x->ask->own)->timings) {
        llm_json_put_text(out, ", \"timings\": ");
        openai_put_timings(x, c, out);
    }
    llm_json_put_text(out, "}\n\n");
}

static void end_choice(const answer *x, const answer_choice *c, llm_json_out *out) {
    llm_json_put_text(out, "data: ");
    put_answer(out, x, c);
    llm_json_put_text(out, "\n\n");
}

static void progress(const answer *x, const answer_choice *c, int64_t n_done, llm_json_out *out) {
    llm_json_format(out, "data: {'index': %d, 'content': '', 'tokens': [], 'stop': false",
                    c->index);
    openai_put_progress(x, c, n_done, ((const own_ask *)x->ask->own)->timings, out);
    llm_json_put_text(out, "}\n\n");
}

static void alive(const answer *x, llm_json_out *out) {
    (void)x;
    llm_json_put_text(out, ":\n\n");
}

static const char *error_type(const char *type) {
    static const char *const names[][2] = {
        {"not_found", "not_found_error"},         {"authentication", "authentication_error"},
        {"permission", "permission_error"},       {"rate_limit", "rate_limit_error"},
        {"overloaded", "unavailable_error"},      {"timeout", "server_error"},
        {"server_error", "server_error"},         {"unsupported", "not_supported_error"},
        {"too_long", "exceed_context_size_error"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type, names[i][0]) == 0)
            return names[i][1];
    return "invalid_request_error";
}

void llamacpp_error(const api_error *e, bool in_stream, llm_json_out *out) {
    llm_json_format(out, "%s{'error': {'code': %d, 'message': %.*s, 'type': '%s'",
                    in_stream ? "data: " : "", e->status, LLM_JSON_TEXT(e->message),
                    error_type(e->type));
    openai_put_overflow(e, out);
    llm_json_put_text(out, in_stream ? "}}\n\n" : "}}");
}

const dialect api_llamacpp_completion = {.name = "llama.cpp.completion",
                                         .stream_type = "text/event-stream",
                                         .read = read_completion,
                                         .whole = whole,
                                         .part = part,
                                         .end_choice = end_choice,
                                         .progress = progress,
                                         .alive = alive,
                                         .error = llamacpp_error,
                                         .fields = fields};

const dialect api_llamacpp_infill = {.name = "llama.cpp.infill",
                                     .stream_type = "text/event-stream",
                                     .read = read_infill,
                                     .whole = whole,
                                     .part = part,
                                     .end_choice = end_choice,
                                     .progress = progress,
                                     .alive = alive,
                                     .error = llamacpp_error,
                                     .fields = infill_fields};
