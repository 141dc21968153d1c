/* Shows an answer as it comes: the reasoning at its beginning, <think> .. </think>, is dimmed, shown
 * like the rest, or left out. */
#ifndef TOOLS_CHAT_SHOW_H
#define TOOLS_CHAT_SHOW_H

#include "ggl/str.h"
#include "text_stream.h"

typedef struct chat_show {
    text_stream *out;
    int reasoning; /* REASONING_SHOW, .. */
    bool has_looks;
    enum { SHOW_BEGIN, SHOW_THOUGHT, SHOW_ANSWER } state;
    bool skips_space;          /* white space comes next that is not shown */
    char held[16];             /* what may be a part of a mark, or white space before one */
    size_t n_held, n_newlines; /* newlines that are shown if something follows */
    bool dimmed, thinks;       /* thinks: "thinking .." stands in the line */
} chat_show;

/* prompt: after whose end the answer comes; templates may begin it with "<think>". */
void chat_show_begin(chat_show *s, text_stream *out, int reasoning, bool has_looks, ggl_str prompt);
void chat_show_put(chat_show *s, const char *text, size_t n);
void chat_show_end(chat_show *s);

#endif
