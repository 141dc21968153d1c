#include "choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "common/json_write.h"
#include "common/process.h"
#include "ggl/graph.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/show.h"

enum { MOST_AT_ONCE = 64, DEFAULT_CTX = 4096 };

typedef struct found {
    const char *label;
    llm_choice of;
    size_t k;
} found;

void choose_set_session(llm_session_params *p, const cli_options *o, const llm_model *m) {
    const int64_t given = o->open.how.params.n_ctx, own = llm_model_n_ctx(m);
    const int64_t n_ctx = given > 0 ? given : own > 0 ? own : DEFAULT_CTX;
    p->n_slots = 1 + (int64_t)(o->choose.n < MOST_AT_ONCE ? o->choose.n : MOST_AT_ONCE);
    p->n_rows = p->n_slots;
    p->n_ctx = n_ctx;
    p->n_pool = n_ctx + p->n_slots * GGL_PAGE; /* labels share the pages of the prompt */
}

/* The conversation as JSON. Reasoning would come before an answer, so there is none. */
static char *conversation(const cli_options *o, ggl_str text) {
    llm_json_out out = {0};
    llm_json_put_text(&out, "{\"enable_thinking\":false,\"messages\":[");
    if (o->chat.system)
        llm_json_format(&out, "{'role':'system','content':%.*s},",
                        LLM_JSON_STR(((ggl_str){o->chat.system, strlen(o->chat.system)})));
    llm_json_format(&out, "{'role':'user','content':%.*s}]}", LLM_JSON_STR(text));
    if (!out.failed)
        return out.s;
    ggl_free(out.s);
    return NULL;
}

/* The likeliest first; of equals the one that came first. */
static int by_probability(const void *a, const void *b) {
    const found *x = a, *y = b;
    if (x->of.probability != y->of.probability)
        return x->of.probability < y->of.probability ? 1 : -1;
    return (x->k > y->k) - (x->k < y->k);
}

static void put_json(FILE *to, const found *f, size_t n, bool ends) {
    fprintf(to, "{\"choices\": [");
    for (size_t i = 0; i < n; i++) {
        fprintf(to, "%s{\"label\": ", i > 0 ? ", " : "");
        json_put_string(to, f[i].label, strlen(f[i].label));
        fprintf(to, ", \"probability\": %.9g, \"logprob\": ", f[i].of.probability);
        fprintf(to, f[i].of.logprob < -1e300 ? "null" : "%.9g", f[i].of.logprob);
        fprintf(to, ", \"n_tokens\": %zu}", f[i].of.n_tokens);
    }
    fprintf(to, "], \"with_end\": %s}\n", ends ? "true" : "false");
}

static void put_lines(FILE *to, const found *f, size_t n) {
    for (size_t i = 0; i < n; i++)
        ggl_fprint(to, "%.6f  %10.4f  %s\n", f[i].of.probability, f[i].of.logprob, f[i].label);
}

static int put(const cli_options *o, const found *f, size_t n, bool ends) {
    ggl_error err = {0};
    ggl_new_file *file = NULL;
    if (o->output && ggl_new_file_open(&file, o->output, &err) != GGL_OK)
        return process_stopped ? process_stop_code() : tool_error("llm-cli", 1, "-o: %s", err.msg);
    FILE *to = file ? ggl_new_file_stream(file) : stdout;
    if (o->json_output)
        put_json(to, f, n, ends);
    else
        put_lines(to, f, n);
    if (file && ggl_new_file_commit(file, &err) != GGL_OK)
        return tool_error("llm-cli", 1, "-o: %s", err.msg);
    return 0;
}

static ggl_status compare(llm_context *c, const cli_options *o, ggl_str text, bool chat, found *f,
                          bool *ends, ggl_error *err) {
    const size_t n = o->choose.n;
    size_t *n_label = ggl_calloc(n, sizeof *n_label);
    llm_choice *choice = ggl_calloc(n, sizeof *choice);
    char *json = chat ? conversation(o, text) : NULL;
    const llm_choose_params p = {.size = sizeof p,
                                 .chat = chat,
                                 .per_token = o->choose_per_token,
                                 .with_end = o->choose_with_end,
                                 .ends = ends};
    ggl_status st = n_label && choice && (json || !chat)
                        ? GGL_OK
                        : ggl_fail(err, GGL_NOMEM, "out of memory for %zu labels", n);
    for (size_t k = 0; k < n && n_label; k++)
        n_label[k] = strlen(o->choose.s[k]);
    if (st == GGL_OK)
        st = llm_choose(c, chat ? json : text.s, chat ? strlen(json) : text.n, o->choose.s, n_label,
                        n, &p, choice, err);
    for (size_t k = 0; k < n && st == GGL_OK; k++)
        f[k] = (found){o->choose.s[k], choice[k], k};
    ggl_free(json);
    ggl_free(choice);
    ggl_free(n_label);
    return st;
}

int choose_run(llm_context *c, const cli_options *o, ggl_str text, bool chat) {
    ggl_error err = {0};
    bool ends = false;
    if (text.n == 0)
        return tool_error("llm-cli", 2, "--choose needs a prompt: -p TEXT, or -f FILE");
    ggl_status opened = GGL_OK;
    const int wrong =
        chat ? open_options_open_chat("llm-cli", &o->open, c, o->chat.thinks, &opened, &err) : -1;
    if (wrong >= 0)
        return wrong;
    if (opened != GGL_OK)
        return tool_error("llm-cli", 1, "%s", err.msg);
    found *f = ggl_calloc(o->choose.n, sizeof *f);
    if (!f)
        return tool_error("llm-cli", 1, "out of memory for %zu labels", o->choose.n);
    const ggl_status st = compare(c, o, text, chat, f, &ends, &err);
    int code = 0;
    if (st == GGL_OK) {
        qsort(f, o->choose.n, sizeof *f, by_probability);
        code = put(o, f, o->choose.n, ends);
    } else if (st == GGL_CANCELLED && process_stopped) {
        code = process_stop_code();
    } else {
        code = tool_error("llm-cli", st == GGL_USAGE ? 2 : 1, "--choose: %s", err.msg);
    }
    ggl_free(f);
    return code;
}
