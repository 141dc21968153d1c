/* A text being edited: bytes of valid UTF-8, and a cursor between two characters. */
#ifndef TOOLS_LINE_BUFFER_H
#define TOOLS_LINE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE_MOST = 4 << 20 }; /* bytes of a text */

typedef struct line_buffer {
    char *s; /* [n], and a NUL; NULL: empty */
    size_t n, cap, cursor;
    char *killed; /* what Ctrl-K, Ctrl-U and Ctrl-W took last */
    size_t n_killed;
} line_buffer;

void line_buffer_fini(line_buffer *b);
void line_buffer_clear(line_buffer *b);
/* Returns the text, which has a NUL. */
const char *line_buffer_text(const line_buffer *b);

/* These return false if nothing changes: at an end, out of memory, or the text is too long. */
bool line_buffer_insert(line_buffer *b, const char *s, size_t n); /* at the cursor, which goes on */
bool line_buffer_set(line_buffer *b, const char *s,
                     size_t n); /* the whole text; cursor at its end */
bool line_buffer_delete(line_buffer *b, size_t from, size_t to);
bool line_buffer_kill(line_buffer *b, size_t from, size_t to); /* deletes, and can be put back */
bool line_buffer_yank(line_buffer *b);
bool line_buffer_swap(line_buffer *b); /* the characters around the cursor */

/* Places in the text. A character includes the combining marks after it; a line ends at a newline, a
 * word is letters, digits, '_' and all characters beyond ASCII. */
size_t line_buffer_before(const line_buffer *b, size_t at); /* one character back */
size_t line_buffer_after(const line_buffer *b, size_t at);
size_t line_buffer_word_before(const line_buffer *b, size_t at);
size_t line_buffer_word_after(const line_buffer *b, size_t at);
size_t line_buffer_space_before(const line_buffer *b, size_t at); /* a word up to white space */
size_t line_buffer_line_begin(const line_buffer *b, size_t at);
size_t line_buffer_line_end(const line_buffer *b, size_t at);

#endif
