/* What llm-gguf check finds; see check.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "common/json_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"

static void keep(gguf_findings *c, const char *text) {
    char *copy = ggl_copy_text(text);
    if (copy && ggl_grow((void *)&c->text, &c->cap, c->n_text + 1, sizeof *c->text)) {
        c->text[c->n_text++] = copy;
    } else {
        free(copy);
        c->is_missing = true;
    }
}

void gguf_findings_fini(gguf_findings *c) {
    for (size_t i = 0; i < c->n_text; i++)
        free(c->text[i]);
    ggl_free(c->text);
    *c = (gguf_findings){0};
}

void gguf_find(gguf_findings *c, const char *fmt, ...) {
    char text[2400];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(text, sizeof text, fmt, args);
    va_end(args);
    if (c->keeps) {
        keep(c, text);
        c->n++;
        return;
    }
    tool_begin_line();
    if (c->json) {
        printf("%s\n  ", c->n ? "," : "");
        json_put_string(stdout, text, strlen(text));
    } else if (c->n < GGUF_PAGE) {
        tool_print_line(text, 0, 2);
    }
    c->n++;
}

/* True for a line of a descriptor's text, "   28 | layer l < n_layer:", and the caret below. */
static bool is_quote(const char *s) {
    return s[strspn(s, " 0123456789")] == '|';
}

void gguf_find_error(gguf_findings *c, const ggl_error *err) {
    char text[sizeof err->msg];
    const size_t first = strcspn(err->msg, "\n");
    const bool list = first > 0 && err->msg[first - 1] == ':';
    size_t n = 0;
    for (const char *s = err->msg; *s && (n == 0 || list) && !is_quote(s);) {
        const size_t length = strcspn(s, "\n");
        for (size_t i = 0; i < length; i++)
            if (s[i] != ' ' || (n > 0 && text[n - 1] != ' '))
                text[n++] = s[i];
        s += length;
        if (*s && *++s && n > 0 && text[n - 1] != ' ')
            text[n++] = ' ';
    }
    while (n > 0 && text[n - 1] == ' ')
        n--;
    gguf_find(c, "%.*s", (int)n, text);
}
