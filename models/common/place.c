/* Error messages: place, message, the line of text and a caret. */
#include "place.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/show.h"

#define LINE_SHOWN 110 /* bytes; of a longer line only a window around the caret is shown */

/* Returns where the character at i ends. An invalid byte counts as a character. */
static size_t next_char(ggl_str t, size_t i) {
    size_t n = ggl_utf8_length(t.s + i, t.n - i);
    return i + (n > 0 ? n : 1);
}

static size_t line_begin(llm_place p) {
    size_t i = p.at < p.text.n ? p.at : p.text.n;
    while (i > 0 && p.text.s[i - 1] != '\n')
        i--;
    return i;
}

static size_t line_end(llm_place p) {
    size_t i = p.at < p.text.n ? p.at : p.text.n;
    while (i < p.text.n && p.text.s[i] != '\n' && p.text.s[i] != '\r')
        i++;
    return i;
}

void llm_place_line_col(llm_place p, int *line, int *col) {
    *line = 1;
    for (size_t i = 0; i < p.at && i < p.text.n; i++)
        *line += p.text.s[i] == '\n';
    *col = 1;
    for (size_t i = line_begin(p); i < p.at && i < p.text.n; i = next_char(p.text, i))
        ++*col;
}

/* Appends n bytes to a NUL-terminated text, as many as fit into `size`. */
static void append(char *buf, size_t size, const char *s, size_t n) {
    size_t used = strlen(buf);
    if (used + n + 1 > size)
        n = size - used - 1;
    memcpy(buf + used, s, n);
    buf[used + n] = 0;
}

/* Appends a name, escaped because it may come from a file. */
static void append_shown(char *buf, size_t size, const char *s) {
    size_t used = strlen(buf);
    ggl_show(buf + used, size - used, s, strlen(s));
}

/* Appends bytes from..to of a text; '?' replaces unprintable characters. */
static void append_line(char *buf, size_t size, ggl_str t, size_t from, size_t to) {
    for (size_t i = from, n; i < to; i = n) {
        unsigned char c = (unsigned char)t.s[i];
        n = next_char(t, i);
        bool c1 = c == 0xc2 && n == i + 2 && (unsigned char)t.s[i + 1] < 0xa0;
        bool prints = c >= 0x20 && c != 0x7f && !c1 && ggl_utf8_length(t.s + i, t.n - i) > 0;
        append(buf, size, prints ? t.s + i : "?", prints ? n - i : 1);
    }
}

/* Appends the line, or a window of a long one, with a caret below the place and the hint after
 * it. */
static void append_caret(char *buf, size_t size, llm_place p, int line, const char *hint) {
    size_t begin = line_begin(p), end = line_end(p), at = p.at < end ? p.at : end, to = begin;
    while (at - begin > LINE_SHOWN / 2)
        begin = next_char(p.text, begin);
    for (to = begin; to < end && to - begin < LINE_SHOWN;)
        to = next_char(p.text, to);
    char head[32];
    snprintf(head, sizeof head, "\n%5d | ", line);
    append(buf, size, head, strlen(head));
    append_line(buf, size, p.text, begin, to);
    append(buf, size, "\n      | ", 9);
    for (size_t i = begin; i < at; i = next_char(p.text, i))
        append(buf, size, " ", 1);
    append(buf, size, "^", 1);
    for (size_t i = next_char(p.text, at); at < to && i < at + p.n && i < to;
         i = next_char(p.text, i))
        append(buf, size, "^", 1);
    if (hint && hint[0]) {
        append(buf, size, "  ", 2);
        append_shown(buf, size, hint);
    }
}

ggl_status llm_place_failv(ggl_error *err, ggl_status s, llm_place p, const char *chain,
                           const char *hint, const char *fmt, va_list args) {
    if (!err)
        return s;
    int line, col;
    llm_place_line_col(p, &line, &col);
    char msg[sizeof err->msg] = "", head[32], text[900];
    snprintf(head, sizeof head, ":%d:%d: error: ", line, col);
    ggl_vformat(text, sizeof text, fmt, args);
    append_shown(msg, 200, p.name);
    append(msg, sizeof msg, head, strlen(head));
    append(msg, sizeof msg, text, strlen(text));
    if (chain)
        append_shown(msg, sizeof msg, chain);
    append_caret(msg, sizeof msg, p, line, hint);
    err->status = s; /* ggl_fail would show the line ends as \x0a */
    memcpy(err->msg, msg, strlen(msg) + 1);
    return s;
}
