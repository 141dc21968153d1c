/* Where a person's messages come from: an edited line on a terminal, or plain lines. */
#ifndef TOOLS_CHAT_INPUT_H
#define TOOLS_CHAT_INPUT_H

#include "common/line_edit.h"
#include "ggl/str.h"
#include "llm/context.h"

typedef struct chat_input {
    bool is_terminal; /* standard input is one: prompts are shown */
    bool edits;       /* lines are edited */
    bool multiline;
    line_history *history;
    line_editor *editor;
    char *line, *text; /* of plain lines */
    size_t cap_line, n_text, cap_text;
    llm_context *context; /* its weights are prepared while nothing is typed; NULL: none */
} chat_input;

/* complete: of line_editor_params; may be NULL. False: out of memory. */
bool chat_input_open(chat_input *in, bool multiline, bool with_history,
                     void (*complete)(void *, const char *, size_t, line_words *), void *ctx);
void chat_input_close(chat_input *in);
/* Reads a message. In a pipe each line is one; on a terminal a backslash at the end of a line continues
 * it; with multiline, all lines up to such a backslash, or to the end, are one. *text is valid until the
 * next call. */
line_result chat_input_read(chat_input *in, const char *prompt, ggl_str *text);
/* Puts a message into the history; a note says once if that cannot be written. */
void chat_input_remember(chat_input *in, ggl_str text);

#endif
