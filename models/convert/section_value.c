/* Values of a folder's files as messages show them. */
#include <stdio.h>

#include "conversion.h"
#include "ggl/internal/show.h"

enum { MOST_SHOWN = 4 }; /* numbers of a list */

void llm_arch_convert_value_text(const json_value *v, char *buf, size_t size) {
    char text[64];
    bool is_short = v->kind == JSON_ARRAY && v->n <= MOST_SHOWN;
    for (size_t i = 0; is_short && i < v->n; i++)
        is_short = v->item[i].kind == JSON_NUMBER;
    if (is_short) {
        size_t n = (size_t)snprintf(buf, size, "[");
        for (size_t i = 0; i < v->n; i++)
            n += (size_t)snprintf(buf + n, size - n, "%s%.6g", i ? ", " : "", v->item[i].number);
        snprintf(buf + n, size - n, "]");
        return;
    }
    switch (v->kind) {
    case JSON_BOOL:
        snprintf(buf, size, "%s", v->flag ? "true" : "false");
        break;
    case JSON_NUMBER:
        snprintf(buf, size, "%.12g", v->number);
        break;
    case JSON_STRING:
        ggl_show(text, sizeof text, v->s, v->n < sizeof text ? v->n : sizeof text - 1);
        snprintf(buf, size, "\"%s\"", text);
        break;
    default:
        snprintf(buf, size, "%s", llm_json_kind_text(v->kind));
    }
}
