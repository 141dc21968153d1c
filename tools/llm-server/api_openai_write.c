/* Parts of answers that OpenAI's APIs share. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "api_openai.h"
#include "api_pieces.h"

void openai_put_int(llm_json_out *out, int64_t x) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, x);
    llm_json_put_text(out, text);
}

void openai_put_double(llm_json_out *out, double x) {
    char text[32] = "null";
    if (isfinite(x))
        snprintf(text, sizeof text, "%.17g", x);
    else if (!isnan(x))
        snprintf(text, sizeof text, x < 0 ? "-9999" : "9999");
    llm_json_put_text(out, text);
}

void openai_put_model(const answer *x, llm_json_out *out) {
    const char *name = x->ask->model ? x->ask->model : x->facts->model;
    llm_json_put_string(out, (ggl_str){name, strlen(name)});
}

void openai_put_head(const answer *x, const char *prefix, const char *object, llm_json_out *out) {
    llm_json_format(out, "{'id':'%s%s','object':'%s','created':%lld,'model':", prefix, x->id,
                    object, (long long)x->created);
    openai_put_model(x, out);
    llm_json_put_text(out, ",\"system_fingerprint\":\"b" TOOLS_VERSION "-llm-server\"");
}

/* --- counts ------------------------------------------------------------------------------------- */

/* Writes names and numbers in turn; a NULL name ends them. */
typedef struct count {
    const char *name;
    int64_t n;
} count;

static void put_counts(const count *c, llm_json_out *out) {
    for (; c->name; c++)
        llm_json_format(out, "%s%lld", c->name, (long long)c->n);
}

void openai_put_usage(const answer_counts *n, llm_json_out *out) {
    const count rows[] = {
        {"{\"prompt_tokens\":", n->n_prompt},
        {",\"completion_tokens\":", n->n_drawn},
        {",\"total_tokens\":", n->n_prompt + n->n_drawn},
        {",\"prompt_tokens_details\":{\"cached_tokens\":", n->n_reused},
        {",\"audio_tokens\":", n->n_sound},
        {"},\"completion_tokens_details\":{\"reasoning_tokens\":", n->n_reasoning},
        {",\"audio_tokens\":", 0},
        {",\"accepted_prediction_tokens\":", 0},
        {",\"rejected_prediction_tokens\":", 0},
        {NULL, 0}};
    put_counts(rows, out);
    llm_json_put_text(out, "}}");
}

/* n tokens, of which n_run took the time. Speeds are those of the time that is written. */
static void put_speed(const char *name, int64_t n, int64_t n_run, double seconds,
                      llm_json_out *out) {
    char text[256];
    const double ms = n_run > 0 ? floor(seconds * 1e6 + 0.5) / 1e3 : 0;
    snprintf(text, sizeof text,
             ",\"%s_n\":%" PRId64
             ",\"%s_ms\":%.3f,\"%s_per_token_ms\":%.6g,\"%s_per_second\":%.15g",
             name, n, name, ms, name, n_run > 0 ? ms / (double)n_run : 0, name,
             ms > 0 ? 1e3 / ms * (double)n_run : 0);
    llm_json_put_text(out, text);
}

void openai_put_timings(const answer *x, const answer_choice *c, llm_json_out *out) {
    answer_choice all = {.n_prompt = x->counts.n_prompt,
                         .n_reused = x->counts.n_reused,
                         .n_drawn = x->counts.n_drawn};
    for (int i = 0; i < x->n_choices && !c; i++) {
        const answer_choice *one = &x->choice[i];
        all.prompt_s = fmax(all.prompt_s, one->prompt_s);
        all.generate_s = fmax(all.generate_s, one->generate_s);
        all.n_guessed += one->n_guessed;
        all.n_right += one->n_right;
    }
    c = c ? c : &all;
    put_counts((const count[]){{"{\"cache_n\":", c->n_reused}, {NULL, 0}}, out);
    const int64_t n_run = c->n_prompt - c->n_reused;
    put_speed("prompt", n_run, n_run, c->prompt_s, out);
    /* the first token is drawn from what the prompt's last one gave, and is part of its time */
    put_speed("predicted", c->n_drawn, c->n_drawn > 0 ? c->n_drawn - 1 : 0, c->generate_s, out);
    if (c->n_guessed > 0)
        put_counts((const count[]){{",\"draft_n\":", c->n_guessed},
                                   {",\"draft_n_accepted\":", c->n_right},
                                   {NULL, 0}},
                   out);
    llm_json_put_text(out, "}");
}

void openai_put_finish(const answer_choice *c, llm_json_out *out) {
    static const char *const text[] = {
        [FINISH_STOP] = "\"stop\"",        [FINISH_STOP_STRING] = "\"stop\"",
        [FINISH_LENGTH] = "\"length\"",    [FINISH_CALLS] = "\"tool_calls\"",
        [FINISH_CANCELLED] = "\"length\"", [FINISH_DEADLINE] = "\"length\""};
    llm_json_put_text(out, text[c->finish]);
}

/* --- tokens ------------------------------------------------------------------------------------- */

/* `"token":..,"id":..,"logprob":..,"bytes":[..]` */
static void put_token(int32_t id, ggl_str text, double logprob, llm_json_out *out) {
    llm_json_format(out, "'token':%.*s,'id':%d,'logprob':", LLM_JSON_STR(text), id);
    openai_put_double(out, logprob);
    llm_json_put_text(out, ",\"bytes\":");
    put_bytes(out, text);
}

void openai_put_tokens(const answer *x, const answer_token *t, size_t n, llm_json_out *out) {
    for (size_t i = 0; i < n; i++) {
        llm_json_put_text(out, i > 0 ? ",{" : "{");
        put_token(t[i].id, t[i].text, t[i].logprob, out);
        llm_json_put_text(out, ",\"top_logprobs\":[");
        for (size_t k = 0; k < t[i].n_top; k++) {
            llm_json_put_text(out, k > 0 ? ",{" : "{");
            put_token(t[i].top[k].id, token_text(x->facts, t[i].top[k].id), t[i].top[k].logprob,
                      out);
            llm_json_put_text(out, "}");
        }
        llm_json_put_text(out, "]}");
    }
}

void openai_put_ids(const answer *x, const answer_part *p, size_t n, llm_json_out *out) {
    bool first = true;
    if (!x->ask->return_tokens)
        return;
    llm_json_put_text(out, ",\"tokens\":[");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < p[i].n_tokens; k++) {
            llm_json_format(out, "%s%d", first ? "" : ",", p[i].token[k].id);
            first = false;
        }
    llm_json_put_text(out, "]");
}

void openai_put_arguments(const ask *a, const answer_part *p, llm_json_out *out) {
    llm_json *doc = NULL;
    if (openai_is_custom(a, p->name) &&
        llm_json_parse(&doc, p->arguments.s, p->arguments.n, "arguments", NULL) != GGL_OK)
        doc = NULL;
    const json_value *input = doc ? llm_json_get_kind(&doc->root, "input", JSON_STRING) : NULL;
    llm_json_put_string(out, input ? json_str(input) : p->arguments);
    llm_json_free(doc);
}

void openai_put_texts(const answer_part *p, size_t n, part_kind kind, llm_json_out *out) {
    llm_json_out text = {0};
    for (size_t i = 0; i < n; i++)
        if (p[i].kind == kind) {
            llm_json_put(&text, "\n", p[i].joins);
            llm_json_put(&text, p[i].text.s, p[i].text.n);
        }
    llm_json_put_string(out, (ggl_str){text.n ? text.s : "", text.n});
    out->failed = out->failed || text.failed;
    ggl_free(text.s);
}

/* --- the shared functions of dialects ----------------------------------------------------------- */

void openai_put_progress(const answer *x, const answer_choice *c, int64_t n_done, bool timings,
                         llm_json_out *out) {
    const answer_choice now = {
        .n_prompt = n_done, .n_reused = c->n_reused, .prompt_s = x->counts.total_s};
    llm_json_format(
        out, ",'prompt_progress':{'total':%lld,'cache':%lld,'processed':%lld,'time_ms':%.0f}",
        (long long)c->n_prompt, (long long)c->n_reused, (long long)n_done, x->counts.total_s * 1e3);
    if (timings) {
        llm_json_put_text(out, ",\"timings\":");
        openai_put_timings(x, &now, out);
    }
}

/* What is different in chats and in completions. */
static const struct form {
    const char *prefix;        /* of the id */
    const char *whole, *chunk; /* objects */
    const char *member,
        *empty; /* of a choice in a chunk: what has the text, and its value without one */
} forms[] = {{"cmpl-", "text_completion", "text_completion", "text", "\"\""},
             {"chatcmpl-", "chat.completion", "chat.completion.chunk", "delta", "{}"}};

static const struct form *form_of(const answer *x) {
    return &forms[x->ask->kind == ASK_CHAT];
}

static void put_sums(const answer *x, llm_json_out *out) {
    llm_json_put_text(out, "],\"usage\":");
    openai_put_usage(&x->counts, out);
    llm_json_put_text(out, ",\"timings\":");
    openai_put_timings(x, NULL, out);
}

void openai_put_whole(const answer *x, openai_choice_fn *put_choice, llm_json_out *out) {
    openai_put_head(x, form_of(x)->prefix, form_of(x)->whole, out);
    llm_json_put_text(out, ",\"choices\":[");
    for (int i = 0; i < x->n_choices; i++) {
        llm_json_put_text(out, i > 0 ? "," : "");
        put_choice(x, &x->choice[i], out);
    }
    put_sums(x, out);
}

void openai_begin_chunk(const answer *x, int index, llm_json_out *out) {
    llm_json_put_text(out, "data: ");
    openai_put_head(x, form_of(x)->prefix, form_of(x)->chunk, out);
    llm_json_format(out, ",'choices':[{'index':%d,'%s':", index, form_of(x)->member);
}

void openai_end_chunk(const answer *x, const answer_choice *timed, llm_json_out *out) {
    llm_json_put_text(out, x->ask->stream_usage ? "}],\"usage\":null" : "}]");
    if (timed) {
        llm_json_put_text(out, ",\"timings\":");
        openai_put_timings(x, timed, out);
    }
    llm_json_put_text(out, "}\n\n");
}

void openai_end_choice(const answer *x, const answer_choice *c, llm_json_out *out) {
    openai_begin_chunk(x, c->index, out);
    llm_json_format(out, "%s,'logprobs':null,'finish_reason':", form_of(x)->empty);
    openai_put_finish(c, out);
    openai_end_chunk(x, x->ask->stream_usage ? NULL : c, out);
}

void openai_progress(const answer *x, const answer_choice *c, int64_t n_done, llm_json_out *out) {
    openai_begin_chunk(x, c->index, out);
    llm_json_format(out, "%s,'logprobs':null,'finish_reason':null}]", form_of(x)->empty);
    openai_put_progress(x, c, n_done, openai_own_of(x->ask)->timings_per_token, out);
    llm_json_put_text(out, "}\n\n");
}

void openai_end(const answer *x, llm_json_out *out) {
    if (x->ask->stream_usage) {
        llm_json_put_text(out, "data: ");
        openai_put_head(x, form_of(x)->prefix, form_of(x)->chunk, out);
        llm_json_put_text(out, ",\"choices\":[");
        put_sums(x, out);
        llm_json_put_text(out, "}\n\n");
    }
    llm_json_put_text(out, "data: [DONE]\n\n");
}

void openai_alive(const answer *x, llm_json_out *out) {
    (void)x;
    llm_json_put_text(out, ": waiting\n\n"); /* a comment: clients skip it */
}

static void put_nullable(const char *s, llm_json_out *out) {
    if (s)
        llm_json_put_string(out, (ggl_str){s, strlen(s)});
    else
        llm_json_put_text(out, "null");
}

void openai_put_overflow(const api_error *e, llm_json_out *out) {
    if (!e->n_prompt)
        return;
    llm_json_format(out, ",'n_prompt_tokens':%lld,'n_ctx':%lld", (long long)e->n_prompt,
                    (long long)e->n_ctx);
}

void openai_put_error(const api_error *e, llm_json_out *out) {
    static const struct {
        const char *type, *name, *code;
    } rows[] = {{"invalid_request", "invalid_request_error", NULL},
                {"not_found", "invalid_request_error", "not_found"},
                {"authentication", "authentication_error", "invalid_api_key"},
                {"permission", "permission_error", "permission_denied"},
                {"too_large", "invalid_request_error", "request_too_large"},
                {"rate_limit", "rate_limit_error", "rate_limit_exceeded"},
                {"overloaded", "server_error", "overloaded"},
                {"timeout", "server_error", "timeout"},
                {"unsupported", "invalid_request_error", "unsupported"},
                {"too_long", "exceed_context_size_error", "context_length_exceeded"},
                {"server_error", "server_error", NULL}};
    size_t k = 0;
    while (k + 1 < sizeof rows / sizeof *rows && strcmp(rows[k].type, e->type) != 0)
        k++;
    const bool no_model =
        e->param && strcmp(e->type, "not_found") == 0 && strcmp(e->param, "model") == 0;
    const char *code = e->code ? e->code : no_model ? "model_not_found" : rows[k].code;
    llm_json_put_text(out, "{\"message\":");
    put_nullable(e->message, out);
    llm_json_put_text(out, ",\"type\":");
    put_nullable(rows[k].name, out);
    llm_json_put_text(out, ",\"param\":");
    put_nullable(e->param, out);
    llm_json_put_text(out, ",\"code\":");
    put_nullable(code, out);
    openai_put_overflow(e, out);
    llm_json_put_text(out, "}");
}

void openai_error(const api_error *e, bool in_stream, llm_json_out *out) {
    llm_json_put_text(out, in_stream ? "data: {\"error\":" : "{\"error\":");
    openai_put_error(e, out);
    llm_json_put_text(out, in_stream ? "}\n\n" : "}");
}
