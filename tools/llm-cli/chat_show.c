#include "chat_show.h"

#include <stdio.h>
#include <string.h>

#include "chat_options.h"
#include "common/args.h"

static const char mark_begin[] = "<think>", mark_end[] = "</think>";

static void put(chat_show *s, const char *text, size_t n) {
    text_stream_put(s->out, text, n);
}

static void set_dim(chat_show *s, bool dim) {
    const char *look = dim ? "\033[2m" : "\033[0m";
    if (dim == s->dimmed || !s->has_looks)
        return;
    text_stream_end(s->out);
    fputs(look, stdout);
    s->dimmed = dim;
}

/* While reasoning is hidden, a word in the line says that something happens. */
static void show_thinking(chat_show *s, bool thinks) {
    if (s->reasoning != REASONING_HIDE || thinks == s->thinks || !s->has_looks)
        return;
    fputs(thinks ? "\033[2mthinking ..\033[0m" : "\r\033[K", stdout);
    fflush(stdout);
    tool_set_line(thinks ? TOOL_LINE_TEXT : TOOL_LINE_EMPTY);
    s->thinks = thinks;
}

static void begin_thought(chat_show *s) {
    s->state = SHOW_THOUGHT;
    s->skips_space = true;
    s->n_newlines = 0;
    if (s->reasoning == REASONING_DIM)
        set_dim(s, true);
    show_thinking(s, true);
}

static void end_thought(chat_show *s) {
    set_dim(s, false);
    show_thinking(s, false);
    s->state = SHOW_ANSWER;
    if (s->reasoning == REASONING_DIM && !s->skips_space)
        put(s, "\n\n", 2);
    s->skips_space = true;
    s->n_newlines = 0;
}

void chat_show_begin(chat_show *s, text_stream *out, int reasoning, bool has_looks,
                     ggl_str prompt) {
    static const size_t n_mark = sizeof mark_begin - 1;
    *s = (chat_show){
        .out = out, .reasoning = reasoning, .has_looks = has_looks, .skips_space = true};
    while (prompt.n > 0 && strchr(" \n\t\r", prompt.s[prompt.n - 1]))
        prompt.n--;
    if (reasoning == REASONING_SHOW)
        s->state = SHOW_ANSWER;
    else if (prompt.n >= n_mark && memcmp(prompt.s + prompt.n - n_mark, mark_begin, n_mark) == 0)
        begin_thought(s);
}

/* Puts a byte that is part of no mark. */
static void put_byte(chat_show *s, char c) {
    const bool hidden = s->state == SHOW_THOUGHT && s->reasoning == REASONING_HIDE;
    if (s->skips_space && strchr(" \n\t\r", c) && c)
        return;
    s->skips_space = false;
    if (hidden)
        return;
    if (s->state == SHOW_THOUGHT && c == '\n') { /* none before the end of the thought */
        s->n_newlines++;
        return;
    }
    for (; s->n_newlines > 0; s->n_newlines--)
        put(s, "\n", 1);
    put(s, &c, 1);
}

static void put_held(chat_show *s) {
    const size_t n = s->n_held;
    s->n_held = 0;
    for (size_t i = 0; i < n; i++)
        put_byte(s, s->held[i]);
}

/* Takes a byte while a mark may come. */
static void take(chat_show *s, char c) {
    const char *mark = s->state == SHOW_BEGIN ? mark_begin : mark_end;
    if (s->n_held > 0 && c != mark[s->n_held]) {
        s->state = s->state == SHOW_BEGIN ? SHOW_ANSWER : s->state;
        put_held(s);
    }
    if (s->n_held == 0 && s->state == SHOW_BEGIN && c != mark[0] && !(c && strchr(" \n\t\r", c)))
        s->state = SHOW_ANSWER; /* it begins without reasoning */
    if (s->state != SHOW_ANSWER && c == mark[s->n_held]) {
        s->held[s->n_held++] = c;
        if (mark[s->n_held])
            return;
        s->n_held = 0;
        if (s->state == SHOW_BEGIN)
            begin_thought(s);
        else
            end_thought(s);
        return;
    }
    put_byte(s, c);
}

void chat_show_put(chat_show *s, const char *text, size_t n) {
    size_t i = 0;
    for (; i < n && (s->state != SHOW_ANSWER || s->n_held > 0 || s->skips_space); i++)
        take(s, text[i]);
    if (i < n)
        put(s, text + i, n - i);
}

void chat_show_end(chat_show *s) {
    put_held(s);
    set_dim(s, false);
    show_thinking(s, false);
    text_stream_end(s->out);
}
