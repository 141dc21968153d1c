#include "fit_lines.h"

#include <stdlib.h>
#include <string.h>

#include "char_width.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"

enum {
    CELL_GAP = 3, /* so many spaces stand before a column of the table */
    LEAST = 24,   /* columns of the terminal for text below one */
    INDENT = 4    /* otherwise */
};

FILE *fit_lines_begin(fit_lines *l, FILE *out) {
    const int fd = ggl_os_fileno(out),
              columns = ggl_os_is_terminal(fd) ? ggl_os_terminal_columns(fd) : 0;
    *l = (fit_lines){.out = out, .to = out};
    if (columns > LEAST)
        l->to = ggl_os_memory_stream_open(&l->memory) ? l->memory.to : out;
    l->width = columns;
    return l->to;
}

void fit_lines_end(fit_lines *l) {
    if (l->to == l->out || !ggl_os_memory_stream_close(&l->memory))
        return;
    for (const char *s = l->memory.text, *end = s + l->memory.n; s < end;) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        stop = stop ? stop : end;
        fit_line(l->out, s, (size_t)(stop - s), l->width);
        s = stop + (stop < end);
    }
    free(l->memory.text);
}

/* The part of a line that begins at byte `from`, in column `at`, and where it has to end. */
typedef struct part {
    size_t end;
    int cell; /* the last column of the table that begins in it; 0: none */
} part;

static part find_end(const char *s, size_t n, size_t from, int at, int width) {
    part p = {.end = n};
    size_t last = 0, spaces = 0, size; /* last: where the last word ended */
    for (size_t i = from; i < n; i += size) {
        uint32_t c;
        size = char_read(s + i, n - i, &c);
        if (c == ' ') {
            last = spaces == 0 && at > 0 && i > from && s[i - 1] != ' ' ? i : last;
            spaces++;
            at++;
            continue;
        }
        if (spaces >= CELL_GAP && last > 0 && at <= width - LEAST)
            p.cell = at;
        spaces = 0;
        at += char_width(c);
        if (at > width && last > 0) {
            p.end = last;
            return p;
        }
    }
    return p;
}

void fit_line(FILE *out, const char *s, size_t n, int width) {
    size_t indent = 0;
    while (indent < n && s[indent] == ' ')
        indent++;
    int at = 0, below = (int)indent + INDENT;
    for (size_t from = 0; from < n;) {
        const part p = indent > 0 ? find_end(s, n, from, at, width) : (part){.end = n};
        if (from == 0 && p.cell > 0)
            below = p.cell;
        fprintf(out, "%*s", at, "");
        fwrite(s + from, 1, p.end - from, out);
        fputc('\n', out);
        for (from = p.end; from < n && s[from] == ' ';)
            from++;
        at = below;
    }
    if (n == 0)
        fputc('\n', out);
}
