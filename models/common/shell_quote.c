#include "shell_quote.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/show.h"

/* True if a terminal shows the text as it is: ggl_show changes nothing of it. */
static bool is_shown(const char *s) {
    char same[2];
    return ggl_show(same, sizeof same, s, strlen(s)) == strlen(s);
}

/* Writes one byte within '..' or, if `escapes`, within $'..'; returns the length. */
static int put_byte(char *to, size_t size, unsigned char c, bool escapes) {
    if (escapes && (c < 32 || c >= 127)) /* three digits: a digit that follows is no part of it */
        return snprintf(to, size, "\\%03o", c);
    if (escapes && (c == '\'' || c == '\\'))
        return snprintf(to, size, "\\%c", c);
    return c == '\'' ? snprintf(to, size, "'\\''") : snprintf(to, size, "%c", c);
}

const char *llm_shell_quote(char word[LLM_SHELL_WORD], const char *s) {
    enum { MOST = 4, END = 2 }; /* bytes for one of the name's; a quote and the NUL */
    const bool escapes = !is_shown(s);
    size_t n =
        (size_t)snprintf(word, LLM_SHELL_WORD, "%s'%s", escapes ? "$" : "", *s == '-' ? "./" : "");
    for (; *s && n + MOST + END < LLM_SHELL_WORD; s++)
        n += (size_t)put_byte(word + n, LLM_SHELL_WORD - n, (unsigned char)*s, escapes);
    if (*s)
        return strcpy(word, "FILE");
    strcpy(word + n, "'");
    return word;
}
