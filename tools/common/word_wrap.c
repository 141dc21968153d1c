#include "word_wrap.h"

#include <string.h>

#include "char_width.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"

/* The last column stays free: a cursor after it would be in doubt. */
static int last_column(const word_wrap *w) {
    if (w->columns > 0)
        return w->columns - 1;
    const int columns = ggl_os_terminal_columns(ggl_os_fileno(w->out));
    return columns > 1 ? columns - 1 : 79;
}

static void end_word(word_wrap *w) {
    w->n = 0;
    w->width = 0;
}

static void begin_line(word_wrap *w) {
    putc('\n', w->out);
    w->column = 0;
}

/* Makes room for a character at the end of the line. Takes back the word before it, unless that fills
 * the line. */
static void break_line(word_wrap *w) {
    if (w->n == 0 || w->width >= w->column) {
        begin_line(w);
        end_word(w);
        return;
    }
    fprintf(w->out, "\033[%dD\033[K", w->width);
    begin_line(w);
    fwrite(w->word, 1, w->n, w->out);
    w->column = w->width;
}

static void put_char(word_wrap *w, const char *s, size_t n, int width, int last) {
    if (w->column + width > last)
        break_line(w);
    fwrite(s, 1, n, w->out);
    w->column += width;
    if (width == 2 || w->n + n > sizeof w->word) { /* lines may break after every wide character */
        end_word(w);
        return;
    }
    memcpy(w->word + w->n, s, n);
    w->n += n;
    w->width += width;
}

/* A space at the edge becomes the end of the line. */
static void put_space(word_wrap *w, int last) {
    end_word(w);
    if (w->column >= last) {
        begin_line(w);
        return;
    }
    putc(' ', w->out);
    w->column++;
}

/* Returns the bytes of an escape sequence at the start of s: ESC [ .. letter. */
static size_t escape_size(const char *s, size_t n) {
    size_t i = n > 1 && s[1] == '[' ? 2 : 1;
    while (i > 1 && i < n && ((unsigned char)s[i] < 0x40 || (unsigned char)s[i] > 0x7e))
        i++;
    return i > 1 && i < n ? i + 1 : i;
}

bool word_wrap_put(word_wrap *w, const char *text, size_t n) {
    const int last = last_column(w);
    for (size_t i = 0, size; i < n; i += size) {
        uint32_t c;
        size = char_read(text + i, n - i, &c);
        if (c == 0x1b) {
            size = escape_size(text + i, n - i);
            fwrite(text + i, 1, size, w->out);
        } else if (c == '\n') {
            end_word(w);
            begin_line(w);
        } else if (c == ' ') {
            put_space(w, last);
        } else if (c == '\t') {
            end_word(w);
            putc('\t', w->out);
            w->column = w->column / 8 * 8 + 8;
        } else {
            put_char(w, text + i, size, char_width(c), last);
        }
    }
    return fflush(w->out) == 0 && !ferror(w->out);
}
