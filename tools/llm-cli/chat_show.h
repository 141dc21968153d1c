/* Shows an answer as it comes: reasoning is dimmed or left out, and calls of tools become lines of JSON; or
 * all is shown as the model wrote it. */
#ifndef TOOLS_CHAT_SHOW_H
#define TOOLS_CHAT_SHOW_H

#include "llm/internal/calls.h"
#include "text_stream.h"

typedef struct chat_show_params {
    text_stream *out;
    int reasoning;          /* REASONING_SHOW, .. */
    bool has_looks;         /* out is a terminal that can dim text */
    bool has_tools;         /* calls are lines of JSON; without tools they are text */
    llm_calls_params calls; /* format of the answer */
} chat_show_params;

typedef struct chat_show {
    chat_show_params p;
    llm_calls *calls;
    llm_calls_kind last; /* the kind of part that was shown last */
    bool begun;          /* a part of the content was collected */
    bool any;            /* something was shown */
    bool hid;            /* reasoning was left out */
    bool dimmed, thinks; /* thinks: "thinking .." stands in the line */
    char *found; /* the calls as a JSON array of OpenAI's form, without brackets; [n_found] */
    size_t n_found, cap_found;
    char *content; /* text besides reasoning and calls; [n_content] */
    size_t n_content, cap_content;
} chat_show;

/* Statuses of llm_calls_new, llm_calls_add and llm_calls_finish. is_cut: a limit ended the answer, so a call that is not complete is none. */
GGL_NODISCARD ggl_status chat_show_begin(chat_show *s, const chat_show_params *p, ggl_error *err);
GGL_NODISCARD ggl_status chat_show_put(chat_show *s, const char *text, size_t n, ggl_error *err);
GGL_NODISCARD ggl_status chat_show_end(chat_show *s, bool is_cut, ggl_error *err);
void chat_show_fini(chat_show *s);

#endif
