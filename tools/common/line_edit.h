/* Edits a line, or several, on a terminal: takes the bytes that the terminal sends, and gives those
 * that show the text. It reads and writes nothing itself; tools/common/terminal.h does that.
 *
 *     line_editor *e = line_editor_new(&(line_editor_params){.history = h});
 *     line_editor_resize(e, 80, 24);
 *     line_editor_begin(e, "> ");
 *     while (line_editor_feed(e, bytes, n, &used) == LINE_MORE) ...   // write line_editor_draw(e)
 *     text = line_editor_text(e, &n);
 *
 * Keys: arrows, Home, End, Delete, Backspace; Ctrl-A E B F P N H D K U W Y T L R C J; Alt-B F D,
 * Alt-Backspace; Tab completes. Enter ends the text, unless a backslash is before it, which it
 * replaces by a newline; Ctrl-J and Alt-Enter are newlines, as are those of a pasted text. The text is
 * valid UTF-8: other bytes become U+FFFD. */
#ifndef TOOLS_LINE_EDIT_H
#define TOOLS_LINE_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "line_history.h"

typedef enum line_result {
    LINE_MORE,      /* the text is not finished */
    LINE_DONE,      /* Enter */
    LINE_END,       /* Ctrl-D in an empty text; the end of a pipe */
    LINE_INTERRUPT, /* Ctrl-C */
    LINE_SUSPEND,   /* Ctrl-Z: the text goes on when the process does */
    LINE_STOPPED,   /* only from terminal_read: a signal ends the program */
    LINE_FAILED     /* only from terminal_read: reading failed, or out of memory */
} line_result;

/* What could stand in place of the text from `start` to the cursor. */
typedef struct line_words {
    size_t start;
    char **word; /* [n] */
    size_t n, cap;
} line_words;
void line_words_add(line_words *w, const char *word); /* copies it */

typedef struct line_editor_params {
    line_history *history; /* borrowed; NULL: none */
    bool multiline;        /* Enter is a newline, and ends a text only after a backslash */
    /* Lists completions of text[0..cursor); text has a NUL. NULL: none. */
    void (*complete)(void *ctx, const char *text, size_t cursor, line_words *words);
    void *ctx;
} line_editor_params;

typedef struct line_editor line_editor;

line_editor *line_editor_new(const line_editor_params *p); /* NULL: out of memory */
void line_editor_free(line_editor *e);

/* The terminal's size, before the first begin and whenever it changes. */
void line_editor_resize(line_editor *e, int n_cols, int n_rows);
/* Starts an empty text. The cursor must be in the first column. The prompt may have escape sequences
 * that change the look (CSI .. m); it is borrowed until the text is finished. */
void line_editor_begin(line_editor *e, const char *prompt);
/* Takes bytes up to the one that changes the result; *used is their number. After another result
 * than LINE_MORE or LINE_SUSPEND the text is finished, and its last drawing leaves the cursor below it. */
line_result line_editor_feed(line_editor *e, const char *bytes, size_t n, size_t *used);
/* Nothing has come for a while: an Escape byte was a key of its own. */
void line_editor_idle(line_editor *e);
/* Ends the text from outside, as if by Enter, so that the cursor is below it. */
void line_editor_leave(line_editor *e);
/* Forgets what was drawn: the next drawing starts in the first column of the cursor's row. */
void line_editor_forget(line_editor *e);
/* Returns what to write so that the screen shows the text as it is now, *n bytes; valid until the next
 * call. Call it when there is no more input, not for each key. */
const char *line_editor_draw(line_editor *e, size_t *n);
/* Returns the text, with a NUL after its *n bytes; valid until line_editor_begin. */
const char *line_editor_text(const line_editor *e, size_t *n);

#endif
