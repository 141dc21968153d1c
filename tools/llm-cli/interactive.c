/* -i: a text that the model continues and a person extends by typing, without a chat template. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chat_impl.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/terminal.h"
#include "ggl/internal/alloc.h"

typedef struct pad {
    const chat_setup *setup;
    llm_sampler *sampler;
    llm_generator *g;
    chat_input in;
    text_stream out;
    stops stops;
    chat_text typed;
    llm_tokens tokens; /* the whole text */
    bool told_shift;
} pad;

static int pad_open(pad *p, const chat_setup *s) {
    ggl_error err = {0};
    p->setup = s;
    const int code =
        sampling_open(&p->sampler, "llm-cli", &s->o->sampling, (uint64_t)s->o->seed, s->tokenizer,
                      llm_session_n_vocab(s->session), llm_session_n_ctx(s->session));
    if (code >= 0)
        return code;
    const llm_generator_params gp = {.size = sizeof gp,
                                     .session = s->session,
                                     .sampler = p->sampler,
                                     .tokenizer = s->tokenizer,
                                     .guesser = s->guesser,
                                     .n_guess_max = s->n_guess_max,
                                     .shift = s->o->shift || !s->o->full_given,
                                     .n_keep = s->o->n_keep,
                                     .progress = s->progress,
                                     .ctx = s->ctx};
    if (llm_generator_new(&p->g, &gp, &err) != GGL_OK ||
        stops_init(&p->stops, &s->o->stops, s->o->escape, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (!chat_input_open(&p->in, s->o->chat.multiline, !s->o->chat.no_history, NULL, NULL))
        return tool_error(TOOL, 1, "out of memory");
    return -1;
}

static void pad_close(pad *p) {
    chat_input_close(&p->in);
    llm_generator_free(p->g);
    llm_sampler_free(p->sampler);
    ggl_free(p->typed.s);
    stops_fini(&p->stops);
    llm_tokens_fini(&p->tokens);
}

/* Appends the tokens of a text to those that the generator has. */
static ggl_status append(pad *p, const char *text, size_t n, ggl_error *err) {
    size_t n_had;
    const int32_t *had = llm_generator_tokens(p->g, &n_had);
    const unsigned flags = (n_had == 0 ? LLM_TOKENIZE_BOS : 0u) |
                           (p->setup->o->no_special ? 0u : LLM_TOKENIZE_SPECIAL);
    p->tokens.n = 0;
    if (!ggl_grow(&p->tokens.id, &p->tokens.cap, n_had + 1, sizeof *p->tokens.id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text");
    if (n_had > 0)
        memcpy(p->tokens.id, had, n_had * sizeof *had);
    p->tokens.n = n_had;
    ggl_status st = llm_tokenize(p->setup->tokenizer, text, n, flags, &p->tokens, err);
    progress_begin("tokens", 0, "prompt");
    if (st == GGL_OK && p->tokens.n > 0)
        st = llm_generator_prompt(p->g, &(llm_prompt){.id = p->tokens.id, .n = p->tokens.n}, err);
    progress_end();
    return st;
}

static void note_shift(pad *p) {
    const llm_generator_stats stats = llm_generator_get_stats(p->g);
    if (stats.n_shifts == 0 || p->told_shift)
        return;
    p->told_shift = true;
    tool_note(TOOL, "the context was full; its older half was dropped");
}

/* Continues the text until the model ends it, or -n tokens, or Ctrl-C. */
static ggl_status extend(pad *p, ggl_error *err) {
    const cli_options *o = p->setup->o;
    ggl_status st = p->tokens.n == 0 ? GGL_CANCELLED : GGL_OK;
    if (st == GGL_OK)
        st = constraint_begin(p->setup->constraint, p->g, o->n_predict, err);
    for (int64_t n = 0; st == GGL_OK && (o->n_predict < 0 || n < o->n_predict); n++) {
        int32_t id;
        st = process_stopped || p->out.failed ? GGL_CANCELLED : llm_generator_next(p->g, &id, err);
        if (st != GGL_OK || id < 0 ||
            (!o->ignore_eos && llm_tokenizer_is_eog(p->setup->tokenizer, id)))
            break;
        const ggl_str text = llm_token_text(p->setup->tokenizer, id, false);
        st = stops_put(&p->stops, &p->out, text, false, err);
        note_shift(p);
        if (p->stops.found)
            break;
    }
    stops_end(&p->stops, &p->out);
    stops_reset(&p->stops);
    text_stream_end(&p->out);
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
