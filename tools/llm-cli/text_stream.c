#include "text_stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/args.h"

/* Returns the length of a character that begins with the byte c; 1 if no character does. */
static size_t char_size(unsigned char c) {
    return c >= 0xf0 && c < 0xf8 ? 4 : c >= 0xe0 ? (c < 0xf0 ? 3 : 1) : c >= 0xc2 ? 2 : 1;
}

size_t utf8_complete(const char *text, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)text[n - back];
        if ((c & 0xc0) != 0x80) /* the last byte that can begin a character */
            return char_size(c) > back ? n - back : n;
    }
    return n;
}

static void write_out(text_stream *s, const char *text, size_t n) {
    FILE *f = s->file ? ggl_new_file_stream(s->file) : stdout;
    if (s->failed || n == 0)
        return;
    if (s->take) {
        s->failed = !s->take(s->ctx, text, n);
        return;
    }
    s->failed = fwrite(text, 1, n, f) != n || fflush(f) != 0;
    if (s->failed && s->file)
        ggl_new_file_note(s->file);
    else if (s->failed)
        tool_output_lost(errno);
    if (!s->file)
        tool_set_line(text[n - 1] == '\n' ? TOOL_LINE_EMPTY : TOOL_LINE_TEXT);
}

void text_stream_put(text_stream *s, const char *text, size_t n) {
    if (n == 0) /* text may be NULL */
        return;
    while (s->n && n) {
        /* complete the waiting bytes one at a time; at most three wait on, also where none of them belong together */
        s->waiting[s->n++] = *text++;
        n--;
        const size_t whole = utf8_complete(s->waiting, s->n);
        write_out(s, s->waiting, whole);
        s->n -= whole;
        memmove(s->waiting, s->waiting + whole, s->n);
    }
    size_t whole = utf8_complete(text, n);
    write_out(s, text, whole);
    memcpy(s->waiting + s->n, text + whole, n - whole);
    s->n += n - whole;
}

void text_stream_end(text_stream *s) {
    write_out(s, s->waiting, s->n);
    s->n = 0;
}
