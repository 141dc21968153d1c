/* Conversations: which template, the user's turns, and the end. */
#include "chat.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chat_impl.h"
#include "common/input.h"
#include "common/process.h"
#include "common/terminal.h"
#include "ggl/alloc.h"

enum { MOST_TEMPLATE = 4 << 20, MOST_SYSTEM = 16 << 20 }; /* bytes */

static bool has_template(const ggl_gguf *file) {
    ggl_error none = {0};
    ggl_str text;
    return ggl_gguf_get_string(file, "tokenizer.chat_template", &text, &none) > 0;
}

bool chat_begins(const cli_options *o, const ggl_gguf *file) {
    const chat_options *k = &o->chat;
    if (k->refused || k->interactive || o->plan || o->logits || o->watch || (!file && o->arch))
        return false;
    if (k->wanted || k->single)
        return true;
    return !o->prompt && !o->prompt_file && !o->tokens && terminal_is_there() &&
           (!file || k->template_name || k->template_file || has_template(file));
}

void chat_note_template(const cli_options *o, const ggl_gguf *file) {
    if (!o->chat.refused && !o->chat.interactive && has_template(file))
        fputs(TOOL ": note: the model has a chat template: -st answers the prompt, -cnv converses; "
                   "here its\ntext is continued as it is (-no-cnv leaves this note out)\n",
              stderr);
}

/* --- the template ----------------------------------------------------------------------------- */

/* Reads a template's file into *text. -1, or an exit code. */
static int read_template(const char *path, llm_chat_template *with, char **text) {
    *text = tool_read_at_most(TOOL, path, MOST_TEMPLATE, &with->text.n);
    with->name = path;
    with->text.s = *text;
    return *text ? -1 : 1;
}

static int no_template(const chat *c, const ggl_error *err) {
    return tool_error(TOOL, 1,
                      "%s: %s; --chat-template NAME|FILE gives one (chatml, llama3, ..), -i "
                      "continues a text with what you type",
                      c->setup->model_name, err->msg);
}

static int open_template(chat *c) {
    const char *name = c->o.chat.template_file ? c->o.chat.template_file : c->o.chat.template_name;
    llm_chat_template with = {.name = name};
    ggl_error err = {0};
    char *text = NULL;
    if (name && (c->o.chat.template_file || access(name, F_OK) == 0)) {
        const int code = read_template(name, &with, &text);
        if (code >= 0)
            return code;
    }
    const ggl_status st =
        llm_chat_new(&c->format, c->setup->file, c->setup->tokenizer, name ? &with : NULL, &err);
    free(text);
    if (st == GGL_OK)
        return -1;
    if (st == GGL_NOT_FOUND && !name)
        return no_template(c, &err);
    return tool_error(TOOL, 1, "%s%s", err.msg,
                      name ? ""
                           : "; --chat-template NAME|FILE gives another, -no-cnv does without");
}

/* Sets the variables of --chat-template-kwargs and --reasoning-budget. */
static int set_variables(chat *c) {
    static const char off[] = "{\"enable_thinking\": false}";
    ggl_error err = {0};
    const char *vars = c->o.chat.template_vars;
    ggl_status st = GGL_OK;
    if (c->o.chat.reasoning_budget == 0) {
        if (!llm_template_mentions(llm_chat_get_template(c->format), "enable_thinking"))
            return tool_error(
                TOOL, 1,
                "--reasoning-budget 0: the chat template cannot turn reasoning off, it "
                "has no enable_thinking; --reasoning hide hides it");
        st = llm_talk_set(c->talk, (ggl_str){off, sizeof off - 1}, "--reasoning-budget", &err);
    }
    if (st == GGL_OK && vars)
        st = llm_talk_set(c->talk, (ggl_str){vars, strlen(vars)}, "--chat-template-kwargs", &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 2, "%s", err.msg);
}

static int set_system(chat *c) {
    ggl_error err = {0};
    const char *path = c->o.chat.system_file;
    ggl_str text = {c->o.chat.system, c->o.chat.system ? strlen(c->o.chat.system) : 0};
    char *read = NULL;
    if (path) {
        read = tool_read_at_most(TOOL, path, MOST_SYSTEM, &text.n);
        if (!read)
            return 1;
        text.s = read;
        if (text.n > 0 && text.s[text.n - 1] == '\n')
            text.n--;
    }
    const ggl_status st = llm_talk_set_system(c->talk, text, &err);
    free(read);
    c->first = llm_talk_begin(c->talk);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* --- opening ---------------------------------------------------------------------------------- */

int chat_new_sampler(chat *c) {
    ggl_error err = {0};
    llm_sampler *sampler = NULL;
    llm_sampler_params sp = cli_sampler_params(&c->o);
    const int64_t n_ctx = llm_session_n_ctx(c->setup->session);
    sp.tokenizer = c->setup->tokenizer;
    if (llm_sampler_new(&sampler, &sp, (int32_t)llm_session_n_vocab(c->setup->session),
                        (int32_t)(n_ctx < INT32_MAX ? n_ctx : INT32_MAX), &err) != GGL_OK)
        return tool_error(TOOL, 2, "%s", err.msg);
    if (c->g)
        llm_generator_set_sampler(c->g, sampler);
    llm_sampler_free(c->sampler);
    c->sampler = sampler;
    return -1;
}

static int open_generator(chat *c) {
    ggl_error err = {0};
    const int code = chat_new_sampler(c);
    if (code >= 0)
        return code;
    const llm_generator_params p = {.session = c->setup->session,
                                    .sampler = c->sampler,
                                    .tokenizer = c->setup->tokenizer,
                                    .progress = c->setup->progress,
                                    .ctx = c->setup->ctx};
    return llm_generator_new(&c->g, &p, &err) == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

static int chat_open(chat *c, const chat_setup *s) {
    ggl_error err = {0};
    c->setup = s;
    c->o = *s->o;
    c->shifts = c->o.shift || !c->o.full_given;
    c->has_looks = terminal_has_looks() && isatty(STDOUT_FILENO);
    int code = open_template(c);
    if (code < 0 && stops_init(&c->stops, &c->o.stops, c->o.escape, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    if (code < 0 && llm_talk_new(&c->talk, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    if (code < 0)
        code = set_variables(c);
    if (code < 0)
        code = set_system(c);
    if (code < 0)
        code = open_generator(c);
    const bool with_history = !c->o.chat.no_history && !c->o.chat.single;
    if (code < 0 && !chat_input_open(&c->in, c->o.chat.multiline, with_history, chat_complete, c))
        code = tool_error(TOOL, 1, "out of memory");
    return code;
}

static void chat_close(chat *c) {
    chat_input_close(&c->in);
    stops_fini(&c->stops);
    llm_generator_free(c->g);
    llm_sampler_free(c->sampler);
    llm_talk_free(c->talk);
    llm_chat_free(c->format);
    ggl_free(c->answer.s);
    ggl_free(c->attached.s);
    llm_tokens_fini(&c->drawn);
    free(c->saved_as);
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Adds a message of the user, with the files of /read before it. */
static int add_message(chat *c, ggl_str text) {
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    if (c->attached.n > 0) {
        if (!chat_text_add(&c->attached, "\n", 1) || !chat_text_add(&c->attached, text.s, text.n))
            return tool_error(TOOL, 1, "out of memory");
        text = (ggl_str){c->attached.s, c->attached.n};
    }
    st = llm_talk_add(c->talk, "user", text, &err);
    c->attached.n = 0;
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* After an answer: -1 to go on, or the exit code. code: that of the answer. A person at a terminal goes
 * on after errors, and Ctrl-C stops only the answer. */
static int after_answer(chat *c, int code) {
    if (c->out.failed)
        return 1;
    if (process_stopped && !(c->in.is_terminal && process_go_on()))
        return process_stop_code();
    if (code >= 0 && !c->in.is_terminal)
        return code;
    if (c->in.edits)
        fputs("\n", stderr);
    return -1;
}

static int answer_message(chat *c, ggl_str text) {
    const size_t keep = llm_talk_n(c->talk);
    int code = add_message(c, text);
    if (code < 0)
        code = chat_answer(c, keep);
    return after_answer(c, code);
}

/* Takes a line that the user has entered: -1 to go on, or the exit code. */
static int take_line(chat *c, ggl_str line) {
    size_t keep = llm_talk_n(c->talk);
    const bool slash = c->in.is_terminal && line.n > 0 && line.s[0] == '/';
    while (slash && strchr(" \t\n", line.s[line.n - 1]))
        line.n--;
    if (line.n == 0)
        return -1;
    chat_input_remember(&c->in, line);
    if (slash && line.n > 1 && line.s[1] == '/') {
        line.s++;
        line.n--;
    } else if (slash) {
        const chat_next next = chat_command(c, line, &keep);
        if (next == CHAT_ANSWER)
            return after_answer(c, chat_answer(c, keep));
        if (next == CHAT_READ && c->in.edits)
            fputs("\n", stderr);
        return next == CHAT_END ? 0 : -1;
    }
    return answer_message(c, line);
}

/* At a prompt, Ctrl-C drops what was typed; twice in an empty line, it ends the program. */
static int on_interrupt(chat *c, ggl_str line) {
    if (line.n > 0) {
        c->interrupted = false;
        return -1;
    }
    if (c->interrupted)
        return 128 + SIGINT;
    c->interrupted = true;
    chat_say(c, "(Ctrl-C again, or Ctrl-D, ends)");
    return -1;
}

static int read_turns(chat *c) {
    char prompt[80];
    for (int code = -1; code < 0;) {
        ggl_str line;
        const size_t n = chat_n_used(c);
        snprintf(prompt, sizeof prompt, n ? "\033[2m%zu/%" PRId64 "\033[0m > " : "> ", n,
                 llm_session_n_ctx(c->setup->session));
        switch (chat_input_read(&c->in, prompt, &line)) {
        case LINE_DONE:
            c->interrupted = false;
            code = take_line(c, line);
            break;
        case LINE_INTERRUPT:
            code = on_interrupt(c, line);
            break;
        case LINE_END:
            return 0;
        case LINE_STOPPED:
            return process_stop_code();
        default:
            return process_stopped ? process_stop_code()
                                   : tool_error(TOOL, 1, "standard input cannot be read");
        }
        if (code >= 0)
            return code;
    }
    return 0;
}

/* -st: the message is -p, or all that is piped, or a line that is typed. */
static int single_turn(chat *c) {
    ggl_str text = c->setup->first;
    if (!text.s) {
        const line_result r = chat_input_read(&c->in, "> ", &text);
        if (r != LINE_DONE)
            return r == LINE_END ? 0 : r == LINE_INTERRUPT ? 128 + SIGINT : process_stop_code();
    }
    int code = add_message(c, text);
    if (code < 0)
        code = chat_answer(c, 0);
    return process_stopped ? process_stop_code() : code >= 0 ? code : c->out.failed;
}

static int all_turns(chat *c) {
    if (c->o.chat.single)
        return single_turn(c);
    if (c->in.edits) {
        const char *slash = strrchr(c->setup->model_name, '/');
        chat_say(c, "%s. /help lists the commands, Ctrl-D ends.\n",
                 slash ? slash + 1 : c->setup->model_name);
    }
    const int code = c->setup->first.s ? answer_message(c, c->setup->first) : -1;
    return code < 0 ? read_turns(c) : code;
}

int chat_run(const chat_setup *s) {
    chat c = {0};
    int code = chat_open(&c, s);
    if (code < 0)
        code = all_turns(&c);
    chat_close(&c);
    return code;
}
