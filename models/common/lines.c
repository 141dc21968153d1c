#include "lines.h"

bool llm_take_line(ggl_str *rest, ggl_str *line) {
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->s, '\n', rest->n);
    const size_t n = end ? (size_t)(end - rest->s) : rest->n, used = n + (end != NULL);
    *line = (ggl_str){rest->s, n};
    *rest = (ggl_str){rest->s + used, rest->n - used};
    return true;
}

bool llm_take_entry(ggl_str *rest, ggl_str *line) {
    while (llm_take_line(rest, line))
        if (line->n > 0 && line->s[0] != '#')
            return true;
    return false;
}
