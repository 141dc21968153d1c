#include "chat_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "common/process.h"
#include "common/terminal.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "ggl/internal/text.h"
#include "llm/internal/session.h"
#include "opening.h"

enum { MOST_ENTRIES = 1000 };

bool chat_input_open(chat_input *in, bool multiline, bool with_history,
                     void (*complete)(void *, const char *, size_t, line_words *), void *ctx) {
    *in = (chat_input){.is_terminal = ggl_os_is_terminal(OS_STDIN), .multiline = multiline};
    in->edits = terminal_begin();
    if (!in->edits)
        return true;
    const char *off = getenv("LLM_NO_HISTORY");
    const bool keeps = with_history && !(off && *off);
    char *path = keeps ? line_history_path("llm-cli") : NULL;
    in->history = line_history_new(path, MOST_ENTRIES);
    free(path);
    in->editor = line_editor_new(&(line_editor_params){
        .history = in->history, .multiline = multiline, .complete = complete, .ctx = ctx});
    return in->history && in->editor;
}

void chat_input_close(chat_input *in) {
    if (in->edits)
        terminal_end();
    line_editor_free(in->editor);
    line_history_free(in->history);
    ggl_free(in->line);
    ggl_free(in->text);
}

void chat_input_remember(chat_input *in, ggl_str text) {
    char *copy = in->history ? ggl_copy_text_n(text.s, text.n) : NULL;
    if (!copy)
        return;
    line_history_add(in->history, copy);
    free(copy);
    const char *problem = line_history_problem(in->history);
    if (problem)
        tool_note("llm-cli", "%s; the history is not kept", problem);
}

/* --- plain lines ------------------------------------------------------------------------------ */

static bool append(chat_input *in, const char *s, size_t n) {
    if (!ggl_grow(&in->text, &in->cap_text, in->n_text + n + 1, 1))
        return false;
    if (n > 0)
        memcpy(in->text + in->n_text, s, n);
    in->n_text += n;
    return true;
}

/* Reads a line with its end, if it has one. Returns its bytes; 0: there are no more, or *failed. A signal ends it early. */
static size_t read_bytes(chat_input *in, bool *failed) {
    size_t n = 0;
    int c = 0;
    while (c != '\n' && (c = getc(stdin)) != EOF) {
        if (!ggl_grow(&in->line, &in->cap_line, n + 1, 1)) {
            *failed = true;
            return 0;
        }
        in->line[n++] = (char)c;
    }
    *failed = n == 0 && ferror(stdin) != 0;
    return n;
}

/* Reads one line, without its end. LINE_MORE: there is one. */
static line_result read_line(chat_input *in, ggl_str *line) {
    bool failed;
    const size_t n = read_bytes(in, &failed);
    if (n == 0 && process_stopped) {
        clearerr(stdin);
        return in->is_terminal && process_go_on() ? LINE_INTERRUPT : LINE_STOPPED;
    }
    if (n == 0) {
        clearerr(stdin);
        return failed ? LINE_FAILED : LINE_END;
    }
    *line = (ggl_str){in->line, n};
    if (line->n > 0 && line->s[line->n - 1] == '\n')
        line->n--;
    if (line->n > 0 && line->s[line->n - 1] == '\r')
        line->n--;
    return LINE_MORE;
}

static line_result read_plain(chat_input *in, ggl_str *text) {
    ggl_str line = {0};
    in->n_text = 0;
    for (;;) {
        const line_result r = read_line(in, &line);
        if (r == LINE_END && in->n_text > 0)
            in->n_text--; /* the newline that the last line began */
        if (r != LINE_MORE && !(r == LINE_END && in->text && in->n_text > 0))
            return r;
        const bool slash = r == LINE_MORE && line.n > 0 && line.s[line.n - 1] == '\\' &&
                           (in->is_terminal || in->multiline);
        if (r == LINE_MORE && !append(in, line.s, line.n - slash))
            return LINE_FAILED;
        if (r != LINE_MORE || slash == in->multiline)
            break;
        if (!append(in, "\n", 1))
            return LINE_FAILED;
    }
    *text = (ggl_str){in->text ? in->text : "", in->n_text};
    return LINE_DONE;
}

/* Removes escape sequences from a prompt for a terminal that may not know them. */
static void print_prompt(const char *prompt) {
    fflush(stdout);
    for (; *prompt; prompt++) {
        if (*prompt == '\033')
            prompt += strcspn(prompt, "m");
        else
            fputc(*prompt, stderr);
        if (!*prompt)
            break;
    }
}

/* Repacks weights that wait for that, for as long as nobody notices who types; false: there are none. An error comes back
 * with the next answer. */
static bool prepare(void *ctx) {
    size_t left = 0;
    return llm_session_repack(llm_opened_session(ctx), 0.02, &left, NULL) == GGL_OK && left > 0;
}

line_result chat_input_read(chat_input *in, const char *prompt, ggl_str *text) {
    *text = (ggl_str){"", 0};
    if (in->edits) {
        const line_result r =
            terminal_read(in->editor, prompt, in->context ? prepare : NULL, in->context);
        text->s = line_editor_text(in->editor, &text->n);
        tool_set_line(TOOL_LINE_EMPTY);
        return r;
    }
    if (in->is_terminal)
        print_prompt(prompt);
    const line_result r = read_plain(in, text);
    tool_set_line(TOOL_LINE_EMPTY);
    return r;
}
