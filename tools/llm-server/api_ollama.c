/* Ollama's /api/generate, /api/chat, /api/embed and /api/embeddings. Streams are lines of JSON. */
#include "api_ollama.h"

#include <time.h>

#include "api_fim.h"
#include "api_openai.h"
#include "api_pieces.h"
#include "api_shape.h"
#include "ggl/internal/number.h"
#include "ggl/internal/os_clock.h"

/* --- reading ------------------------------------------------------------------------------------ */

static ollama_ask *own_of(ask *a) {
    return a->own;
}

static ggl_status read_string(const json_value *v, const char *name, ggl_str *s, ggl_error *err) {
    if (v->kind != JSON_STRING)
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be a string, not %s", name,
                        llm_json_kind_text((json_kind)v->kind));
    *s = json_str(v);
    return GGL_OK;
}

static ggl_status read_prompt(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    return read_string(v, "prompt", &own_of(a)->prompt, err);
}

static ggl_status read_system(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    return read_string(v, "system", &own_of(a)->system, err);
}

static ggl_status read_suffix(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    return read_string(v, "suffix", &own_of(a)->suffix, err);
}

static ggl_status read_messages(ask *a, const json_value *v, const server_facts *facts,
                                ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE, "\"messages\" must be a list, not %s",
                        llm_json_kind_text((json_kind)v->kind));
    own_of(a)->messages = v;
    return GGL_OK;
}

static ggl_status read_input(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)facts;
    bool fits = v->kind == JSON_STRING || v->kind == JSON_ARRAY;
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n; i++)
        fits &= v->item[i].kind == JSON_STRING;
    if (!fits)
        return ggl_fail(err, GGL_USAGE, "\"input\" must be a string or a list of strings");
    own_of(a)->input = v;
    return GGL_OK;
}

/* "json", or a schema. */
static ggl_status read_format(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    if (v->kind == JSON_STRING && v->n == 0)
        return GGL_OK;
    if (v->kind == JSON_OBJECT)
        return ask_set_form(a, ASK_SCHEMA, v, err);
    if (v->kind == JSON_STRING && llm_json_is(v, "json"))
        return ask_set_form(a, ASK_JSON, v, err);
    return field_wrong(err, "format", v, "\"json\" or a schema");
}

/* Reads "think": a switch, or an effort. */
static ggl_status read_think(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    static const char *const levels[] = {"low", "medium", "high", "max"};
    ollama_ask *own = own_of(a);
    (void)facts;
    own->has_think = own->thinks = true;
    if (v->kind == JSON_BOOL) {
        own->thinks = v->flag;
        return GGL_OK;
    }
    for (size_t i = 0; v->kind == JSON_STRING && i < sizeof levels / sizeof *levels; i++)
        if (llm_json_is(v, levels[i])) {
            own->effort = json_str(v);
            return GGL_OK;
        }
    return field_wrong(err, "think", v, "true, false, \"low\", \"medium\", \"high\" or \"max\"");
}

static ggl_status read_flag(const json_value *v, const char *name, bool *flag, ggl_error *err) {
    if (v->kind != JSON_BOOL)
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be true or false, not %s", name,
                        llm_json_kind_text((json_kind)v->kind));
    *flag = v->flag;
    return GGL_OK;
}

/* Reads a duration such as "1h30m" or "300" in seconds. False if it is no duration. */
static bool read_duration(ggl_str text, double *out) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"h", 3600}, {"m", 60}, {"s", 1}};
    const bool is_negative = text.n > 0 && text.s[0] == '-';
    double sum = 0;
    size_t at = is_negative || (text.n > 0 && text.s[0] == '+');
    if (at == text.n && at > 0)
        return false;
    while (at < text.n) {
        const size_t n = ggl_number_length(text.s + at, text.n - at);
        size_t k = 0;
        if (n == 0 || text.s[at] == '-')
            return false;
        const double x = ggl_number_value(text.s + at, n);
        at += n;
        while (k < sizeof units / sizeof *units &&
               (strlen(units[k].name) > text.n - at ||
                memcmp(text.s + at, units[k].name, strlen(units[k].name)) != 0))
            k++;
        if (k == sizeof units / sizeof *units && at < text.n)
            return false;
        sum += x * (at < text.n ? units[k].seconds : 1);
        at += at < text.n ? strlen(units[k].name) : 0;
    }
    *out = is_negative ? -1 : sum;
    return sum < 1e15;
}

/* How long the model shall stay loaded after its last use; less than 0: for ever. */
static ggl_status read_keep_alive(ask *a, const json_value *v, const server_facts *facts,
                                  ggl_error *err) {
    (void)facts;
    a->has_keep = !(v->kind == JSON_STRING && v->n == 0); /* "" is as if it were absent */
    a->keep_seconds = v->number;
    if (v->kind == JSON_NUMBER ||
        (v->kind == JSON_STRING && read_duration(json_str(v), &a->keep_seconds)))
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE, "\"keep_alive\" must be a duration, such as 300 or \"5m\"");
}

static ggl_status read_raw(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    return read_flag(v, "raw", &own_of(a)->raw, err);
}

static ggl_status read_logprobs(ask *a, const json_value *v, const server_facts *facts,
                                ggl_error *err) {
    (void)facts;
    return read_flag(v, "logprobs", &own_of(a)->has_logprobs, err);
}

static ggl_status read_top_logprobs(ask *a, const json_value *v, const server_facts *facts,
                                    ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < 0 || v->number > 20)
        return ggl_fail(err, GGL_USAGE, "\"top_logprobs\" must be an integer from 0 to 20");
    own_of(a)->n_top = (int64_t)v->number;
    return GGL_OK;
}

static ggl_status read_images(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE, "\"images\" must be a list, not %s",
                        llm_json_kind_text((json_kind)v->kind));
    own_of(a)->images = v;
    return GGL_OK;
}

static ggl_status read_options(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err);

static const field generate_fields[] = {
#include "fields_ollama.def"
    {"prompt", FIELD_FN, .fn = read_prompt},
    {"suffix", FIELD_FN, .fn = read_suffix},
    {"system", FIELD_FN, .fn = read_system},
    {"raw", FIELD_FN, .fn = read_raw},
    {"images", FIELD_FN, .fn = read_images},
    {"template", FIELD_REFUSED, .fn = field_is_empty,
     .why =
         "start the server with --chat-template-file, or set \"raw\" and write the whole prompt"},
    {"context", FIELD_REFUSED, .fn = field_is_empty,
     .why = "use /api/chat, and give the messages again"},
    {0}};

static const field chat_fields[] = {
#include "fields_ollama.def"
    {"messages", FIELD_FN, .fn = read_messages}, {"tools", FIELD_FN, .fn = ollama_tools}, {0}};

/* 0: all. */
static ggl_status read_dimensions(ask *a, const json_value *v, const server_facts *facts,
                                  ggl_error *err) {
    char wanted[80];
    if (v->kind == JSON_NUMBER && v->number == 0) {
        a->n_dims = facts->n_embd;
        return GGL_OK;
    }
    snprintf(wanted, sizeof wanted, "an integer from 0 (all) to %lld", (long long)facts->n_embd);
    return openai_field_dimensions(a, v, facts, NULL) == GGL_OK
               ? GGL_OK
               : field_wrong(err, "dimensions", v, wanted);
}

static const field embed_fields[] = {
#include "fields_ollama_embed.def"
    {"input", FIELD_FN, .fn = read_input}, {0}};

static const field embeddings_fields[] = {
#include "fields_ollama_embed.def"
    {"prompt", FIELD_FN, .fn = read_prompt}, {0}};

/* --- options ------------------------------------------------------------------------------------ */

static ggl_status read_num_predict(ask *a, const json_value *v, const server_facts *facts,
                                   ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < -2 || v->number > 1e9)
        return field_wrong(err, "num_predict", v,
                           "a number of tokens from 0, or -1 (until the context is full)");
    a->n_max = v->number < 0 ? -1 : (int64_t)v->number;
    return GGL_OK;
}

/* Clients send a fixed number, which may be larger than the server's context; that one counts. */
static ggl_status read_num_ctx(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)a;
    (void)facts;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < 0)
        return ggl_fail(err, GGL_USAGE, "\"num_ctx\" must be a number of tokens");
    return GGL_OK;
}

static ggl_status field_is_one(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)a;
    (void)facts;
    return v->kind == JSON_NUMBER && v->number == 1
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED, "not supported");
}

const field ollama_option_fields[] = {
#include "fields_sampling.def"
    {"num_predict", FIELD_FN, .fn = read_num_predict},
    {"num_ctx", FIELD_FN, .fn = read_num_ctx},
    {"stop", .kind = FIELD_STOPS},
    {"num_keep", .kind = FIELD_IGNORED},
    {"num_batch", .kind = FIELD_IGNORED},
    {"num_gpu", .kind = FIELD_IGNORED},
    {"main_gpu", .kind = FIELD_IGNORED},
    {"num_thread", .kind = FIELD_IGNORED},
    {"numa", .kind = FIELD_IGNORED},
    {"low_vram", .kind = FIELD_IGNORED},
    {"f16_kv", .kind = FIELD_IGNORED},
    {"vocab_only", .kind = FIELD_IGNORED},
    {"use_mmap", .kind = FIELD_IGNORED},
    {"use_mlock", .kind = FIELD_IGNORED},
    {"draft_num_predict", .kind = FIELD_IGNORED},
    {"penalize_newline", FIELD_REFUSED, .fn = field_is_true,
     .why = "use \"logit_bias\" with the newline's token"},
    {"tfs_z", FIELD_REFUSED, .fn = field_is_one, .why = "use \"min_p\" or \"typical_p\""},
    {0}};

static ggl_status read_options(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    const char *param = NULL;
    const ggl_status st = read_fields(a, v, ollama_option_fields, facts, &param, err);
    return st == GGL_OK ? st : ggl_within(err, st, "options");
}

/* --- requests ----------------------------------------------------------------------------------- */

/* The text, after the pictures, if there are some. */
static ggl_status one_prompt(ask *a, ggl_error *err) {
    ask_prompt *p = ggl_arena_alloc(&a->arena, 1, sizeof *p);
    llm_json_out marks = {0};
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    const ggl_str text = own_of(a)->prompt;
    p->text = text.s ? text : (ggl_str){"", 0};
    a->prompt = p;
    a->n_prompts = 1;
    const ggl_status st = ollama_images(a, own_of(a)->images, &marks, err);
    if (st == GGL_OK && marks.n > 0) {
        llm_json_put(&marks, p->text.s, p->text.n);
        return ask_keep(a, &marks, &p->text, err);
    }
    ggl_free(marks.s);
    return st;
}

static ggl_status read_by(ask *a, const field *table, const server_facts *facts, const char **param,
                          ggl_error *err) {
    a->own = ggl_arena_alloc(&a->arena, 1, sizeof(ollama_ask));
    if (!a->own)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    const ggl_status st = read_fields(a, &a->doc->root, table, facts, param, err);
    const ollama_ask *own = a->own;
    if (st != GGL_OK)
        return st;
    if (own->has_logprobs)
        a->n_top = (int)own->n_top;
    if (own->n_top > 0 && !own->has_logprobs) {
        *param = "top_logprobs";
        return ggl_fail(err, GGL_USAGE, "\"top_logprobs\" needs \"logprobs\": true");
    }
    return GGL_OK;
}

/* Makes an ask for nothing, with which clients load a model: the answer has no choices. */
static ggl_status ask_nothing(ask *a) {
    a->is_empty = true;
    return GGL_OK;
}

static ggl_status read_generate(ask *a, const server_facts *facts, const char **param,
                                ggl_error *err) {
    a->stream = true;
    const ggl_status st = read_by(a, generate_fields, facts, param, err);
    if (st != GGL_OK)
        return st;
    const ollama_ask *own = a->own;
    const bool has_images = own->images && own->images->n > 0;
    if (own->prompt.n == 0 && !has_images)
        return ask_nothing(a);
    a->kind = own->raw || own->suffix.n > 0 || !facts->has_chat ? ASK_TEXT : ASK_CHAT;
    if (a->kind == ASK_CHAT)
        return ollama_talk(a, param, err);
    if (own->system.n > 0) {
        *param = "system";
        return ggl_fail(err, GGL_UNSUPPORTED,
                        facts->has_chat
                            ? "\"system\" is not supported beside \"raw\" and \"suffix\": write it "
                              "into the prompt"
                            : "\"system\" is not supported: the model has no chat template");
    }
    if (own->suffix.n == 0) {
        *param = "images";
        return one_prompt(a, err);
    }
    if (has_images) {
        *param = "images";
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "\"images\" are not supported beside \"suffix\": the text around a gap has no "
            "pictures");
    }
    *param = "suffix";
    const ggl_status filled =
        fim_prompt(a, facts, &(fim_request){.before = own->prompt, .after = own->suffix}, err);
    return filled == GGL_OK ? filled : ggl_within(err, filled, "suffix");
}

static ggl_status read_chat(ask *a, const server_facts *facts, const char **param, ggl_error *err) {
    a->stream = true;
    const ggl_status st = read_by(a, chat_fields, facts, param, err);
    if (st != GGL_OK)
        return st;
    own_of(a)->is_chat = true;
    a->kind = ASK_CHAT;
    if (!own_of(a)->messages || own_of(a)->messages->n == 0)
        return ask_nothing(a);
    return ollama_talk(a, param, err);
}

static ggl_status read_embeddings(ask *a, const server_facts *facts, const char **param,
                                  ggl_error *err) {
    a->kind = ASK_EMBED;
    a->talk_name = "prompt";
    ggl_status st = read_by(a, embeddings_fields, facts, param, err);
    if (st == GGL_OK)
        st = embed_needs_pooling(facts, err);
    return st == GGL_OK ? one_prompt(a, err) : st;
}

static ggl_status read_embed(ask *a, const server_facts *facts, const char **param,
                             ggl_error *err) {
    a->kind = ASK_EMBED;
    a->truncates = true; /* unless the request says otherwise, as in Ollama; clients rely on it */
    ggl_status st = read_by(a, embed_fields, facts, param, err);
    if (st == GGL_OK)
        st = embed_needs_pooling(facts, err);
    if (st != GGL_OK)
        return st;
    const json_value *input = own_of(a)->input;
    if (!input) {
        *param = "input";
        return ggl_fail(err, GGL_USAGE, "\"input\" is missing");
    }
    if (input->kind == JSON_ARRAY && input->n == 0) /* the answer is a list of no vectors */
        return ask_nothing(a);
    const bool one = input->kind == JSON_STRING;
    a->n_prompts = one ? 1 : input->n;
    a->prompt = ggl_arena_alloc(&a->arena, a->n_prompts + 1, sizeof *a->prompt);
    if (!a->prompt)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    for (size_t i = 0; i < a->n_prompts; i++)
        a->prompt[i].text = json_str(one ? input : &input->item[i]);
    return GGL_OK;
}

/* --- writing ------------------------------------------------------------------------------------ */

static bool is_chat(const answer *x) {
    return ((const ollama_ask *)x->ask->own)->is_chat;
}

/* Begins a line: the model and the time of the request. */
static void put_head(llm_json_out *out, const answer *x) {
    const int64_t t = (int64_t)x->created;
    struct tm tm;
    char text[40] = "";
    if (ggl_os_utc_parts(t, &tm))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    llm_json_put_text(out, "{\"model\": ");
    openai_put_model(x, out);
    llm_json_format(out, ", 'created_at': '%s'", text);
}

static void put_one_logprob(llm_json_out *out, ggl_str text, double logprob) {
    llm_json_format(out, "{'token': %.*s, 'logprob': ", LLM_JSON_STR(text));
    openai_put_double(out, logprob);
    llm_json_put_text(out, ", \"bytes\": ");
    put_bytes(out, text);
}

/* Adds the tokens of a part to the list of log-probabilities, which has *n so far. */
static void put_logprobs(llm_json_out *out, const answer *x, const answer_part *p, size_t *n) {
    for (size_t i = 0; i < p->n_tokens; i++) {
        const answer_token *t = &p->token[i];
        llm_json_put_text(out, (*n)++ ? ", " : ", \"logprobs\": [");
        put_one_logprob(out, t->text, t->logprob);
        for (size_t k = 0; k < t->n_top; k++) {
            llm_json_put_text(out, k ? ", " : ", \"top_logprobs\": [");
            put_one_logprob(out, token_text(x->facts, t->top[k].id), t->top[k].logprob);
            llm_json_put_text(out, "}");
        }
        llm_json_put_text(out, t->n_top ? "]}" : "}");
    }
}

static void put_calls(llm_json_out *out, const answer_part *part, size_t n_parts) {
    int n = 0;
    for (size_t i = 0; i < n_parts; i++) {
        const answer_part *p = &part[i];
        if (p->kind != PART_CALL)
            continue;
        llm_json_format(out, "%s{'id': %.*s, 'function': {'index': %d, 'name': %.*s, 'arguments': ",
                        n++ ? ", " : ", \"tool_calls\": [", LLM_JSON_STR(p->id), p->call,
                        LLM_JSON_STR(p->name));
        llm_json_put(out, p->arguments.s, p->arguments.n);
        llm_json_put_text(out, "}}");
    }
    llm_json_put_text(out, n ? "]" : "");
}

static bool has_kind(const answer_part *part, size_t n, part_kind kind) {
    for (size_t i = 0; i < n; i++)
        if (part[i].kind == kind)
            return true;
    return false;
}

/* Writes the text of parts: a message, or the members response and thinking. */
static void put_parts(llm_json_out *out, const answer *x, const answer_part *part, size_t n) {
    size_t n_logprobs = 0;
    llm_json_put_text(out, is_chat(x) ? ", \"message\": {\"role\": \"assistant\", \"content\": "
                                      : ", \"response\": ");
    openai_put_texts(part, n, PART_CONTENT, out);
    if (has_kind(part, n, PART_REASONING)) {
        llm_json_put_text(out, ", \"thinking\": ");
        openai_put_texts(part, n, PART_REASONING, out);
    }
    put_calls(out, part, n);
    llm_json_put_text(out, is_chat(x) ? "}" : "");
    for (size_t i = 0; i < n; i++)
        put_logprobs(out, x, &part[i], &n_logprobs);
    llm_json_put_text(out, n_logprobs ? "]" : "");
}

static const char *done_reason(finish f) {
    return f == FINISH_LENGTH || f == FINISH_DEADLINE ? "length"
           : f == FINISH_CANCELLED                    ? "cancelled"
                                                      : "stop";
}

static long long nanoseconds(double seconds) {
    return (long long)(seconds * 1e9);
}

/* Ends the last line, or the only one. */
static void put_done(llm_json_out *out, const answer *x) {
    const answer_choice *c = x->n_choices ? &x->choice[0] : NULL;
    llm_json_format(out, ", 'done': true, 'done_reason': '%s'",
                    c                                               ? done_reason(c->finish)
                    : x->ask->has_keep && x->ask->keep_seconds == 0 ? "unload"
                                                                    : "load");
    if (c)
        llm_json_format(out,
                        ", 'total_duration': %lld, 'load_duration': 0, 'prompt_eval_count': %lld, "
                        "'prompt_eval_duration': %lld, 'eval_count': %lld, 'eval_duration': %lld",
                        nanoseconds(x->counts.total_s), (long long)x->counts.n_prompt,
                        nanoseconds(c->prompt_s), (long long)x->counts.n_drawn,
                        nanoseconds(c->generate_s));
    llm_json_put_text(out, "}");
}

static void whole(const answer *x, llm_json_out *out) {
    const answer_choice *c = x->n_choices ? &x->choice[0] : NULL;
    put_head(out, x);
    put_parts(out, x, c ? c->part : NULL, c ? c->n_parts : 0);
    put_done(out, x);
}

static void part(const answer *x, const answer_choice *c, const answer_part *p, llm_json_out *out) {
    (void)c;
    put_head(out, x);
    put_parts(out, x, p, 1);
    llm_json_put_text(out, ", \"done\": false}\n");
}

static void end(const answer *x, llm_json_out *out) {
    put_head(out, x);
    put_parts(out, x, NULL, 0);
    put_done(out, x);
    llm_json_put_text(out, "\n");
}

static void error(const api_error *e, bool in_stream, llm_json_out *out) {
    llm_json_format(out, "{'error': %.*s%s", LLM_JSON_TEXT(e->message), in_stream ? "}\n" : "}");
}

/* --- embeddings --------------------------------------------------------------------------------- */

static void put_vector(llm_json_out *out, const float *v, int64_t n) {
    llm_json_put_text(out, "[");
    for (int64_t i = 0; i < n; i++)
        llm_json_format(out, i ? ", %.9g" : "%.9g", (double)v[i]);
    llm_json_put_text(out, "]");
}

static void embed_whole(const answer *x, llm_json_out *out) {
    const int64_t n = x->facts->n_embd;
    llm_json_put_text(out, "{\"model\": ");
    openai_put_model(x, out);
    llm_json_put_text(out, ", \"embeddings\": [");
    for (int i = 0; i < x->n_choices; i++) {
        llm_json_put_text(out, i ? ", " : "");
        put_vector(out, x->embedding + i * n, answer_dims(x));
    }
    llm_json_format(out,
                    "], 'total_duration': %lld, 'load_duration': 0, 'prompt_eval_count': %lld}",
                    nanoseconds(x->counts.total_s), (long long)x->counts.n_prompt);
}

static void embeddings_whole(const answer *x, llm_json_out *out) {
    llm_json_put_text(out, "{\"embedding\": ");
    put_vector(out, x->embedding, answer_dims(x));
    llm_json_put_text(out, "}");
}

const dialect api_ollama_generate = {.name = "ollama.generate",
                                     .stream_type = "application/x-ndjson",
                                     .read = read_generate,
                                     .whole = whole,
                                     .part = part,
                                     .end = end,
                                     .error = error,
                                     .fields = generate_fields};

const dialect api_ollama_chat = {.name = "ollama.chat",
                                 .stream_type = "application/x-ndjson",
                                 .read = read_chat,
                                 .whole = whole,
                                 .part = part,
                                 .end = end,
                                 .error = error,
                                 .fields = chat_fields};

const dialect api_ollama_embed = {.name = "ollama.embed",
                                  .read = read_embed,
                                  .whole = embed_whole,
                                  .error = error,
                                  .fields = embed_fields};

const dialect api_ollama_embeddings = {.name = "ollama.embeddings",
                                       .read = read_embeddings,
                                       .whole = embeddings_whole,
                                       .error = error,
                                       .fields = embeddings_fields};
