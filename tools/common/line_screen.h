/* Shows a text that is being edited in the last rows of a terminal: long lines wrap, and a text with
 * more rows than the screen shows those around the cursor. Rows wrap by themselves, not by newlines,
 * so that terminals that reflow text keep them right when their size changes. */
#ifndef TOOLS_LINE_SCREEN_H
#define TOOLS_LINE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes to write to the terminal. */
typedef struct line_out {
    char *s;
    size_t n, cap;
    bool failed; /* out of memory: some are missing */
} line_out;
void line_out_put(line_out *o, const char *s, size_t n);
void line_out_text(line_out *o, const char *s);

/* What to show. */
typedef struct line_view {
    const char *prompt; /* may have escape sequences CSI .. m */
    const char *s;
    size_t n, cursor;
} line_view;

typedef struct line_screen {
    int n_cols, n_rows;
    int top;   /* first row of the text that is shown */
    int drawn; /* the row of the screen with the cursor, counted from the first with the text */
} line_screen;

/* Redraws everything in place of what was drawn last. */
void line_screen_draw(line_screen *s, const line_view *v, line_out *out);
/* Draws the text for the last time, and leaves the cursor in the row below it. */
void line_screen_leave(line_screen *s, const line_view *v, line_out *out);
/* The terminal has another size; v is what was drawn last. */
void line_screen_resize(line_screen *s, const line_view *v, int n_cols, int n_rows);

/* Returns the columns of a text of one row, without escape sequences. */
int line_text_width(const char *s, size_t n);

#endif
