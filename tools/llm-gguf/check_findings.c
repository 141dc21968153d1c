/* What llm-gguf check finds; see check.h. */
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "common/json_text.h"
#include "ggl/internal/show.h"

void gguf_find(gguf_findings *c, const char *fmt, ...) {
    char text[2400];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(text, sizeof text, fmt, args);
    va_end(args);
    tool_begin_line();
    if (c->json) {
        printf("%s\n  ", c->n ? "," : "");
        json_put_string(stdout, text, strlen(text));
    } else if (c->n < GGUF_PAGE) {
        tool_print_wrapped(text, 0, 2);
    }
    c->n++;
}
