#include "line_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "char_width.h"
#include "ggl/internal/alloc.h"

void line_buffer_fini(line_buffer *b) {
    ggl_free(b->s);
    free(b->killed);
    *b = (line_buffer){0};
}

void line_buffer_clear(line_buffer *b) {
    b->n = b->cursor = 0;
    if (b->s)
        b->s[0] = '\0';
}

const char *line_buffer_text(const line_buffer *b) {
    return b->s ? b->s : "";
}

/* --- changes ---------------------------------------------------------------------------------- */

bool line_buffer_insert(line_buffer *b, const char *s, size_t n) {
    if (n == 0 || n > LINE_MOST - b->n || !ggl_grow(&b->s, &b->cap, b->n + n + 1, 1))
        return false;
    memmove(b->s + b->cursor + n, b->s + b->cursor, b->n - b->cursor);
    memcpy(b->s + b->cursor, s, n);
    b->n += n;
    b->cursor += n;
    b->s[b->n] = '\0';
    return true;
}

bool line_buffer_set(line_buffer *b, const char *s, size_t n) {
    line_buffer_clear(b);
    return line_buffer_insert(b, s, n);
}

bool line_buffer_delete(line_buffer *b, size_t from, size_t to) {
    if (from >= to)
        return false;
    memmove(b->s + from, b->s + to, b->n - to);
    b->n -= to - from;
    b->s[b->n] = '\0';
    b->cursor = b->cursor >= to ? b->cursor - (to - from) : b->cursor > from ? from : b->cursor;
    return true;
}

bool line_buffer_kill(line_buffer *b, size_t from, size_t to) {
    char *copy = from < to ? malloc(to - from) : NULL;
    if (!copy)
        return false;
    memcpy(copy, b->s + from, to - from);
    free(b->killed);
    b->killed = copy;
    b->n_killed = to - from;
    return line_buffer_delete(b, from, to);
}

bool line_buffer_yank(line_buffer *b) {
    return line_buffer_insert(b, b->killed, b->n_killed);
}

bool line_buffer_swap(line_buffer *b) {
    size_t middle = b->cursor;
    if (middle == b->n || b->s[middle] == '\n') /* at the end of a line: the two before it */
        middle = line_buffer_before(b, middle);
    const size_t from = line_buffer_before(b, middle), to = line_buffer_after(b, middle);
    const size_t n = middle - from;
    char *copy = n > 0 && to > middle && !memchr(b->s + from, '\n', to - from) ? malloc(n) : NULL;
    if (!copy)
        return false;
    memcpy(copy, b->s + from, n);
    memmove(b->s + from, b->s + middle, to - middle);
    memcpy(b->s + from + (to - middle), copy, n);
    b->cursor = to;
    free(copy);
    return true;
}

/* --- places ----------------------------------------------------------------------------------- */

/* True if the character at `at` combines with the one before it. */
static bool is_mark(const line_buffer *b, size_t at) {
    uint32_t c;
    if (at >= b->n)
        return false;
    (void)char_read(b->s + at, b->n - at, &c);
    return char_width(c) == 0;
}

size_t line_buffer_before(const line_buffer *b, size_t at) {
    do {
        while (at > 0 && ((unsigned char)b->s[--at] & 0xc0) == 0x80)
            ;
    } while (at > 0 && is_mark(b, at) && b->s[at - 1] != '\n');
    return at;
}

size_t line_buffer_after(const line_buffer *b, size_t at) {
    uint32_t c;
    do {
        if (at < b->n)
            at += char_read(b->s + at, b->n - at, &c);
    } while (is_mark(b, at) && b->s[at - 1] != '\n');
    return at;
}

static bool in_word(char c) {
    return ((unsigned char)c & 0x80) || c == '_' || (c >= '0' && c <= '9') ||
           ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

size_t line_buffer_word_before(const line_buffer *b, size_t at) {
    while (at > 0 && !in_word(b->s[at - 1]))
        at--;
    while (at > 0 && in_word(b->s[at - 1]))
        at--;
    return at;
}

size_t line_buffer_word_after(const line_buffer *b, size_t at) {
    while (at < b->n && !in_word(b->s[at]))
        at++;
    while (at < b->n && in_word(b->s[at]))
        at++;
    return at;
}

size_t line_buffer_space_before(const line_buffer *b, size_t at) {
    while (at > 0 && strchr(" \t\n", b->s[at - 1]))
        at--;
    while (at > 0 && !strchr(" \t\n", b->s[at - 1]))
        at--;
    return at;
}

size_t line_buffer_line_begin(const line_buffer *b, size_t at) {
    while (at > 0 && b->s[at - 1] != '\n')
        at--;
    return at;
}

size_t line_buffer_line_end(const line_buffer *b, size_t at) {
    while (at < b->n && b->s[at] != '\n')
        at++;
    return at;
}
