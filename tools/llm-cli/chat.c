/* Conversations: which template, the user's turns, and the end. */
#include "chat.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat_impl.h"
#include "common/color.h"
#include "common/input.h"
#include "common/open_template.h"
#include "common/process.h"
#include "common/terminal.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"

enum { MOST_SYSTEM = 16 << 20 }; /* bytes */

static bool has_template(const ggl_gguf *file) {
    ggl_error none = {0};
    ggl_str text;
    return ggl_gguf_get_string(file, "tokenizer.chat_template", &text, &none) > 0;
}

/* True if what was given needs a text that is continued. */
static bool is_text(const cli_options *o, const ggl_gguf *file) {
    const chat_options *k = &o->chat;
    return k->refused || k->interactive || o->open.plan || o->logits || o->watch ||
           o->saved_prompt.path || o->n_beams > 1 || (!file && o->open.how.params.arch);
}

bool chat_answers_media(const cli_options *o, const ggl_gguf *file) {
    return o->image.n + o->audio.n > 0 && !o->tokens && !o->chat.wanted && !is_text(o, file) &&
           file && has_template(file);
}

bool chat_begins(const cli_options *o, const ggl_gguf *file) {
    const chat_options *k = &o->chat;
    if (is_text(o, file))
        return false;
    if (k->wanted || k->single)
        return true;
    return !o->prompt && !o->prompt_file && !o->tokens && terminal_is_there() &&
           (!file || open_options_names_template(&o->open) || has_template(file));
}

bool chat_lacks_template(const cli_options *o, const ggl_gguf *file) {
    return o->open.how.path && !o->chat.refused && !o->prompt && !o->prompt_file &&
           terminal_is_there() && file && !has_template(file);
}

void chat_note_template(const cli_options *o, const ggl_gguf *file) {
    if (!o->chat.refused && !o->chat.interactive && has_template(file))
        tool_note(TOOL, "the prompt is continued as plain text, although the model has a chat "
                        "template: -st answers it, -cnv converses, -no-cnv turns this note off");
}

/* --- the template ----------------------------------------------------------------------------- */

static int no_template(const chat *c, const ggl_error *err) {
    return tool_error(TOOL, 1,
                      "%s: %s; --chat-template NAME|FILE gives one (chatml, llama3, ..), -i "
                      "continues a text with what you type",
                      c->setup->model_name, err->msg);
}

static int open_template(chat *c) {
    const bool is_named = open_options_names_template(&c->o.open);
    ggl_error err = {0};
    ggl_status st;
    const int code = open_options_open_chat(TOOL, &c->o.open, c->ctx, c->o.chat.thinks, &st, &err);
    const llm_chat *format = llm_opened_chat(c->ctx);
    if (format)
        c->has_marks = llm_calls_tokens_of(llm_chat_answers(format).format) == LLM_CALLS_ALL_TOKENS;
    if (code >= 0 || st == GGL_OK)
        return code;
    if (st == GGL_NOT_FOUND && !is_named)
        return no_template(c, &err);
    return tool_error(TOOL, 1, "%s%s", err.msg,
                      is_named ? ""
                               : "; --chat-template NAME|FILE gives another, -no-cnv does without");
}

/* Reads --tools, a list. */
static int read_tools(chat *c) {
    const char *path = c->o.chat.tools;
    size_t n = 0;
    if (!path)
        return -1;
    if (!llm_chat_shows_tools(llm_opened_chat(c->ctx)))
        return tool_error(TOOL, 1, "--tools: the chat template does not read tools");
    char *text = tool_read_text(TOOL, path, MOST_SYSTEM, &n);
    if (!text)
        return 1;
    ggl_error err = {0};
    ggl_status st = chat_text_add(&c->tools_text, text, n)
                        ? llm_json_parse(&c->tools, c->tools_text.s, n, "tools", &err)
                        : ggl_fail(&err, GGL_NOMEM, "out of memory for tools");
    free(text);
    if (st == GGL_OK)
        st = llm_calls_check_tools(&c->tools->root, &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "--tools: %s: %s", path, err.msg);
}

static void note_unread(void *ctx, ggl_str name) {
    (void)ctx;
    tool_note(TOOL, "--chat-template-kwargs: the template does not read '%.*s'",
              (int)(name.n < 200 ? name.n : 200), name.s);
}

/* Names that the template does not read may be typing errors. */
static void note_variables(const chat *c) {
    const char *vars = c->o.open.template_vars;
    llm_talk *talk = NULL;
    ggl_error none = {0}; /* the variables were read already */
    if (vars && llm_talk_new(&talk, &none) == GGL_OK &&
        llm_talk_set(talk, (ggl_str){vars, strlen(vars)}, "", &none) == GGL_OK)
        llm_chat_unread(llm_opened_chat(c->ctx), talk, note_unread, NULL);
    llm_talk_free(talk);
}

/* Begins the conversation, with --tools. */
static int begin_talk(chat *c) {
    ggl_error err = {0};
    const int code = read_tools(c);
    if (code >= 0)
        return code;
    ggl_status st = llm_talk_new(&c->talk, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    st = chat_set_variables(c, c->talk, &err);
    if (st == GGL_OK)
        note_variables(c);
    return st == GGL_OK ? -1 : tool_error(TOOL, 2, "%s", err.msg);
}

static int set_system(chat *c) {
    ggl_error err = {0};
    const char *path = c->o.chat.system_file;
    ggl_str text = {c->o.chat.system, c->o.chat.system ? strlen(c->o.chat.system) : 0};
    char *read = NULL;
    if (path) {
        read = tool_read_text(TOOL, path, MOST_SYSTEM, &text.n);
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

/* text_stream.take: breaks lines between words. */
static bool wrap_text(void *ctx, const char *text, size_t n) {
    tool_set_line(text[n - 1] == '\n' ? TOOL_LINE_EMPTY : TOOL_LINE_TEXT);
    return word_wrap_put(ctx, text, n);
}

static int open_output(chat *c) {
    ggl_error err = {0};
    if (!c->o.output && !c->o.chat.no_wrap && terminal_has_looks()) {
        c->wrap.out = stdout;
        c->out.take = wrap_text;
        c->out.ctx = &c->wrap;
    }
    const ggl_status st = c->o.output ? ggl_new_file_open(&c->out.file, c->o.output, &err) : GGL_OK;
    if (st != GGL_OK && process_stopped) /* opening a pipe waits for its reader */
        return process_stop_code();
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s%s", st == GGL_NOMEM ? "" : "-o: ", err.msg);
}

/* Gives the file of -o its name, if there are answers in it. Returns code, or another after an error. */
static int close_output(chat *c, int code) {
    ggl_error err = {0};
    if (!c->out.file || c->all.n_answers == 0) {
        ggl_new_file_discard(c->out.file);
        return code;
    }
    return ggl_new_file_commit(c->out.file, &err) == GGL_OK
               ? code
               : tool_error(TOOL, 1, "-o: %s", err.msg);
}

static int chat_open(chat *c, const chat_setup *s) {
    c->setup = s;
    c->ctx = s->ctx;
    c->is_fresh = true;
    c->o = *s->o;
    c->shifts = c->o.shift || !c->o.full_given;
    c->o.full_given = true; /* for /set, whose table has the choice */
    c->o.on_full = c->shifts;
    c->has_looks = !c->o.output && tool_color(c->o.color, stdout);
    const bool is_seen = c->has_looks || (!c->o.output && ggl_os_is_terminal(OS_STDOUT));
    if (c->o.chat.reasoning == REASONING_DIM && !is_seen)
        c->o.chat.reasoning = REASONING_HIDE;
    int code = open_template(c);
    if (code < 0)
        code = begin_talk(c);
    if (code < 0)
        code = set_system(c);
    if (code < 0)
        code = open_output(c);
    const bool with_history = !c->o.chat.no_history && !c->o.chat.single;
    if (code < 0 && !chat_input_open(&c->in, c->o.chat.multiline, with_history, chat_complete, c))
        code = tool_error(TOOL, 1, "out of memory");
    c->in.context = c->ctx;
    return code;
}

static void chat_close(chat *c) {
    chat_input_close(&c->in);
    llm_talk_free(c->talk);
    ggl_free(c->answer.s);
    record_fini(&c->record);
    ggl_free(c->attached.s);
    ggl_free(c->missing.s);
    for (size_t i = 0; i < c->n_settings; i++)
        free(c->setting[i]);
    ggl_free(c->setting);
    llm_tokens_fini(&c->drawn);
    llm_tokens_fini(&c->forced);
    free(c->saved_as);
    llm_json_free(c->tools);
    ggl_free(c->tools_text.s);
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
    process_spare(0);
    if (code >= 0 && !c->in.is_terminal)
        return code;
    if (c->in.edits)
        fputs("\n", stderr);
    return -1;
}

static int answer_message(chat *c, ggl_str text) {
    const size_t keep = llm_talk_n(c->talk);
    const bool with_files = c->attached.n > 0;
    int code = add_message(c, text);
    if (code < 0)
        code = chat_answer(c, keep);
    if (with_files && llm_talk_n(c->talk) == keep)
        chat_say(c, "(what /read, /image and /audio gave is taken back, too; /clear begins anew)");
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
    if (!c->in.is_terminal && !c->has_told && chat_is_command(line)) {
        const bool is_picture = line.n >= 6 && memcmp(line.s, "/image", 6) == 0;
        tool_note(TOOL, "'%.*s' is a message: lines are commands only on a terminal%s",
                  (int)(line.n < 40 ? line.n : 40), line.s,
                  is_picture ? "; --image FILE shows a picture" : "");
        c->has_told = true;
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
        const size_t n = c->n_used;
        snprintf(prompt, sizeof prompt, n ? "%s%zu/%" PRId64 "%s > " : "> ",
                 c->has_looks ? "\033[2m" : "", n, llm_context_facts(c->ctx)->n_ctx,
                 c->has_looks ? "\033[0m" : "");
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
        if (r == LINE_END && c->in.is_terminal)
            return 0;
        if (r != LINE_DONE && r != LINE_END)
            return r == LINE_INTERRUPT ? 128 + SIGINT : process_stop_code();
    }
    if (text.n == 0 && !c->o.prompt && (c->setup->first.s || !c->in.is_terminal))
        return tool_error(TOOL, 2, "-st: there is no message; pass one with -p, -f or a pipe");
    int code = add_message(c, text);
    if (code < 0)
        code = chat_answer(c, 0);
    return process_stopped ? process_stop_code() : code >= 0 ? code : c->out.failed;
}

static int all_turns(chat *c) {
    if (!chat_text_add(&c->attached, c->setup->attached.s, c->setup->attached.n))
        return 1;
    if (c->o.chat.single)
        return single_turn(c);
    if (c->in.edits && !tool_is_quiet()) {
        const char *slash = ggl_os_last_separator(c->setup->model_name);
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
    code = close_output(&c, code);
    chat_close(&c);
    return code;
}
