/* -i: a text that the model continues and a person extends by typing, without a chat template. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "chat_impl.h"
#include "common/open_context.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/terminal.h"
#include "ggl/internal/alloc.h"

typedef struct pad {
    const chat_setup *setup;
    llm_context *ctx;
    chat_input in;
    text_stream out;
    chat_text typed;
    llm_tokens tokens; /* the whole text */
    bool has_begun, is_ready,
        told_shift; /* is_ready: `tokens` have run, and nothing was generated after them */
} pad;

static int pad_open(pad *p, const chat_setup *s) {
    p->setup = s;
    p->ctx = s->ctx;
    if (!chat_input_open(&p->in, s->o->chat.multiline, !s->o->chat.no_history, NULL, NULL))
        return tool_error(TOOL, 1, "out of memory");
    p->in.context = p->ctx;
    return -1;
}

static void pad_close(pad *p) {
    chat_input_close(&p->in);
    ggl_free(p->typed.s);
    llm_tokens_fini(&p->tokens);
}

static bool on_token(void *user, int32_t id, const float *logits) {
    pad *p = user;
    llm_run_info run = {.size = sizeof run};
    (void)id, (void)logits;
    if (llm_last_run(p->ctx, &run, NULL) == GGL_OK && run.n_shifts > 0 && !p->told_shift) {
        p->told_shift = true;
        tool_note(TOOL, "the context was full; its older half was dropped");
    }
    return !p->out.failed;
}

/* Runs the whole text, of which most has run before. */
static ggl_status begin(pad *p, ggl_error *err) {
    const cli_options *o = p->setup->o;
    llm_generate_params g = p->setup->generation->p;
    g.shift = o->shift || !o->full_given;
    g.n_keep = o->n_keep;
    g.same_sampler = p->has_begun;
    g.user = p;
    g.token = on_token;
    g.prompt_progress = p->setup->progress;
    tool_progress_prompt(p->setup->ctx);
    const ggl_status st = llm_begin(p->ctx, p->tokens.id, p->tokens.n, &g, err);
    progress_end();
    p->has_begun = true;
    p->is_ready = st == GGL_OK;
    return st;
}

/* Copies the tokens of the sequence, after which the text goes on. */
static ggl_status take_tokens(pad *p, ggl_error *err) {
    size_t n;
    const int32_t *id = llm_sequence(p->ctx, &n);
    if (!ggl_grow(&p->tokens.id, &p->tokens.cap, n + 1, sizeof *id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text");
    if (n > 0)
        memcpy(p->tokens.id, id, n * sizeof *id);
    p->tokens.n = n;
    return GGL_OK;
}

/* Appends a text to the sequence, and runs it. */
static ggl_status append(pad *p, const char *text, size_t n, ggl_error *err) {
    ggl_status st = take_tokens(p, err);
    const unsigned flags = (p->tokens.n == 0 ? LLM_TOKENIZE_BOS : 0u) |
                           (p->setup->o->no_special ? 0u : LLM_TOKENIZE_SPECIAL);
    if (st == GGL_OK)
        st = llm_tokenize(llm_opened_tokenizer(p->ctx), text, n, flags, &p->tokens, err);
    return st == GGL_OK && p->tokens.n > 0 ? begin(p, err) : st;
}

/* Continues the text until the model ends it, or -n tokens, or Ctrl-C. */
static ggl_status extend(pad *p, ggl_error *err) {
    llm_run_info run = {.size = sizeof run};
    const char *piece = "";
    size_t n;
    if (p->tokens.n == 0 || p->setup->o->n_predict == 0)
        return GGL_OK;
    ggl_status st = p->is_ready ? GGL_OK : take_tokens(p, err);
    if (st == GGL_OK && !p->is_ready)
        st = begin(p, err);
    p->is_ready = false;
    while (st == GGL_OK && piece) {
        st = llm_next(p->ctx, &piece, &n, err);
        text_stream_put(&p->out, piece, n);
    }
    text_stream_end(&p->out);
    if (st == GGL_OK && llm_last_run(p->ctx, &run, err) == GGL_OK &&
        run.finish == LLM_FINISH_CONTEXT)
        st = ggl_fail(err, GGL_LIMIT, "the context of %" PRId64 " tokens is full",
                      llm_context_facts(p->ctx)->n_ctx);
    return st == GGL_CANCELLED ? GGL_OK : st;
}

/* Reads what is typed, between the prefix and the suffix. A '/' at its end keeps its newline away. */
static line_result read_typed(pad *p) {
    const chat_options *k = &p->setup->o->chat;
    const char *prefix = k->in_prefix ? k->in_prefix : "", *suffix = k->in_suffix;
    ggl_str line;
    tool_begin_line();
    const line_result r = chat_input_read(&p->in, *prefix ? prefix : "> ", &line);
    if (r != LINE_DONE)
        return r;
    chat_input_remember(&p->in, line);
    const bool slash = line.n > 0 && line.s[line.n - 1] == '/';
    p->typed.n = 0;
    const bool empty = line.n == 0; /* the model goes on */
    if (!empty && (!chat_text_add(&p->typed, prefix, strlen(prefix)) ||
                   !chat_text_add(&p->typed, line.s, line.n - slash) ||
                   (!slash && !chat_text_add(&p->typed, "\n", 1)) ||
                   (suffix && !chat_text_add(&p->typed, suffix, strlen(suffix)))))
        return LINE_FAILED;
    if (suffix && !empty)
        text_stream_put(&p->out, suffix, strlen(suffix));
    return r;
}

/* One round: the model continues, the person extends. -1, or the exit code. */
static int take_turn(pad *p, bool *waits, bool *interrupted) {
    ggl_error err = {0};
    ggl_status st = *waits ? GGL_OK : extend(p, &err);
    *waits = false;
    if (p->out.failed || (process_stopped && !(p->in.is_terminal && process_go_on())))
        return p->out.failed ? 1 : process_stop_code();
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    const line_result r = read_typed(p);
    if (r == LINE_END)
        return 0;
    if (r == LINE_INTERRUPT) {
        const bool again = *interrupted;
        *interrupted = *waits = true;
        if (!again)
            fputs("(Ctrl-C again, or Ctrl-D, ends)\n", stderr);
        return again ? 128 + SIGINT : -1;
    }
    if (r != LINE_DONE)
        return process_stopped ? process_stop_code() : tool_error(TOOL, 1, "input cannot be read");
    *interrupted = false;
    if (p->typed.n == 0)
        return -1;
    st = append(p, p->typed.s, p->typed.n, &err);
    return st == GGL_OK || st == GGL_CANCELLED ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

int interactive_run(const chat_setup *s) {
    ggl_error err = {0};
    pad p = {0};
    bool waits = s->o->chat.interactive_first || !s->first.s, interrupted = false;
    int code = pad_open(&p, s);
    if (code < 0 && s->first.s && s->o->display_prompt)
        text_stream_put(&p.out, s->first.s, s->first.n);
    if (code < 0 && s->first.s) {
        const ggl_status st = append(&p, s->first.s, s->first.n, &err);
        if (st != GGL_OK && st != GGL_CANCELLED)
            code = tool_error(TOOL, 1, "%s", err.msg);
    }
    while (code < 0)
        code = take_turn(&p, &waits, &interrupted);
    tool_begin_line();
    pad_close(&p);
    return code;
}
