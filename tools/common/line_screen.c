#include "line_screen.h"

#include <stdio.h>
#include <string.h>

#include "char_width.h"
#include "ggl/internal/alloc.h"

void line_out_put(line_out *o, const char *s, size_t n) {
    o->failed |= !ggl_grow(&o->s, &o->cap, o->n + n + 1, 1);
    if (o->failed)
        return;
    memcpy(o->s + o->n, s, n);
    o->n += n;
}

void line_out_text(line_out *o, const char *s) {
    line_out_put(o, s, strlen(s));
}

/* Writes a sequence "CSI n LETTER" unless n is 0. */
static void put_move(line_out *o, int n, char letter) {
    char text[24];
    if (n > 0)
        line_out_put(o, text, (size_t)snprintf(text, sizeof text, "\033[%d%c", n, letter));
}

/* --- where characters are --------------------------------------------------------------------- */

enum { TAB = 4, INDENT = 2 }; /* columns of a tab, and before the lines of a text after its first */

typedef struct place {
    int row, col;
} place;

/* Returns the columns of a character as it is shown: a tab as spaces, ^X for a control character. */
static int shown_width(uint32_t c) {
    return c == '\t' ? TAB : c < 32 || c == 127 ? 2 : char_width(c);
}

static int indent(const line_screen *s) {
    return s->n_cols > 4 * INDENT ? INDENT : 0;
}

/* Puts a character at *p or, if the row has no room, in the next one. Returns the place after it, and
 * sets *p to its own. */
static place put_at(const line_screen *s, place *p, uint32_t c) {
    if (c == '\n')
        return (place){p->row + 1, indent(s)};
    const int w = shown_width(c);
    if (p->col + w > s->n_cols)
        *p = (place){p->row + 1, 0};
    return (place){p->row, p->col + w};
}

/* Returns the bytes of the escape sequence at s; 0 if none. */
static size_t escape_size(const char *s, size_t n) {
    size_t i = 2;
    if (n < 2 || s[0] != '\033' || s[1] != '[')
        return 0;
    while (i < n && (unsigned char)s[i] < 0x40)
        i++;
    return i < n ? i + 1 : n;
}

int line_text_width(const char *s, size_t n) {
    int width = 0;
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t c;
        len = escape_size(s + i, n - i);
        if (len > 0)
            continue;
        len = char_read(s + i, n - i, &c);
        width += shown_width(c);
    }
    return width;
}

/* Returns the prompt; a plain one if the screen is too narrow. */
static const char *prompt_of(const line_screen *s, const line_view *v) {
    return line_text_width(v->prompt, strlen(v->prompt)) + 4 <= s->n_cols ? v->prompt : "";
}

static place first_place(const line_screen *s, const line_view *v) {
    const char *prompt = prompt_of(s, v);
    return (place){0, line_text_width(prompt, strlen(prompt))};
}

/* Returns where the cursor stands between the characters before and after v->s[at]. After a full row
 * it is in the next one, except before a newline. */
static place cursor_place(const line_screen *s, const line_view *v, place p, size_t at) {
    if (p.col < s->n_cols)
        return p;
    return at < v->n && v->s[at] == '\n' ? (place){p.row, s->n_cols - 1} : (place){p.row + 1, 0};
}

/* Finds where the cursor and the end of the text are. */
static place measure(const line_screen *s, const line_view *v, place *end) {
    place p = first_place(s, v), cursor = p;
    for (size_t i = 0, len; i < v->n; i += len) {
        uint32_t c;
        if (i == v->cursor)
            cursor = cursor_place(s, v, p, i);
        len = char_read(v->s + i, v->n - i, &c);
        place at = p;
        p = put_at(s, &at, c);
        if (i == v->cursor && c != '\n' && at.row > cursor.row)
            cursor = at; /* a wide character that does not fit in the row's last column */
    }
    *end = cursor_place(s, v, p, v->n);
    return v->cursor < v->n ? cursor : *end;
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void put_shown(line_out *out, const char *s, size_t len, uint32_t c) {
    if (c == '\t') {
        line_out_put(out, "    ", TAB);
    } else if (c < 32 || c == 127) {
        const char text[2] = {'^', (char)(c ^ 64)};
        line_out_put(out, text, 2);
    } else if (c >= 128 && c < 160) { /* terminals obey these, too: U+009B is ESC [ */
        line_out_put(out, "?", 1);
    } else {
        line_out_put(out, s, len);
    }
}

/* Writes the rows from `top` to `last`; returns the row in which that ends. */
static int put_rows(const line_screen *s, const line_view *v, int last, line_out *out) {
    place p = first_place(s, v);
    int row = s->top;
    if (s->top == 0)
        line_out_text(out, prompt_of(s, v));
    for (size_t i = 0, len; i < v->n; i += len) {
        uint32_t c;
        len = char_read(v->s + i, v->n - i, &c);
        place at = p;
        p = put_at(s, &at, c);
        if (c == '\n')
            at = p;
        if (at.row > last)
            return row;
        if (at.row < s->top)
            continue;
        if (c == '\n') {
            if (at.row > s->top)
                line_out_text(out, "\r\n");
            line_out_put(out, "  ", (size_t)indent(s));
        } else {
            put_shown(out, v->s + i, len, c);
        }
        row = at.row;
    }
    if (p.col >= s->n_cols && row < last) { /* the cursor's row after a full one: it wraps, too */
        line_out_text(out, " \r");
        row++;
    }
    return row;
}

static void erase(line_screen *s, line_out *out) {
    line_out_text(out, "\r");
    put_move(out, s->drawn, 'A');
    line_out_text(out, "\033[J");
    s->drawn = 0;
}

void line_screen_draw(line_screen *s, const line_view *v, line_out *out) {
    place end, cursor = measure(s, v, &end);
    const int height = s->n_rows > 0 ? s->n_rows : 1;
    if (s->top > cursor.row)
        s->top = cursor.row;
    if (s->top + height <= cursor.row)
        s->top = cursor.row - height + 1;
    if (s->top + height > end.row + 1)
        s->top = end.row + 1 > height ? end.row + 1 - height : 0;
    erase(s, out);
    const int row = put_rows(s, v, s->top + height - 1, out);
    put_move(out, row - cursor.row, 'A');
    line_out_text(out, "\r");
    put_move(out, cursor.col, 'C');
    s->drawn = cursor.row - s->top;
}

void line_screen_leave(line_screen *s, const line_view *v, line_out *out) {
    line_view whole = *v;
    whole.cursor = v->n;
    line_screen_draw(s, &whole, out);
    line_out_text(out, "\r\n");
    s->top = s->drawn = 0;
}

void line_screen_resize(line_screen *s, const line_view *v, int n_cols, int n_rows) {
    place end;
    s->n_cols = n_cols > 0 ? n_cols : 80;
    s->n_rows = n_rows > 0 ? n_rows : 24;
    const int row = measure(s, v, &end).row - s->top;
    s->drawn = row < 0 ? 0 : row < s->n_rows ? row : s->n_rows - 1;
}
