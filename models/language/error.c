/* Places in descriptors, and messages about them. */
#include "common/place.h"
#include "language.h"

static llm_place place_of(arch_place p) {
    return (llm_place){p.text->name, {p.text->s, p.text->n}, p.at, p.n};
}

void llm_arch_line_col(arch_place p, int *line, int *col) {
    llm_place_line_col(place_of(p), line, col);
}

const char *llm_arch_quote(arch_place p, char *buf, size_t size) {
    size_t n = 0;
    for (size_t i = p.at; i < (size_t)p.at + p.n && i < p.text->n && n + 1 < size; i++) {
        char c = p.text->s[i] == '\n' || p.text->s[i] == '\r' ? ' ' : p.text->s[i];
        if (c != ' ' || n == 0 || buf[n - 1] != ' ')
            buf[n++] = c;
    }
    buf[n] = 0;
    return buf;
}

ggl_status llm_arch_failv(ggl_error *err, ggl_status s, arch_place p, const char *chain,
                          const char *hint, const char *fmt, va_list args) {
    return llm_place_failv(err, s, place_of(p), chain, hint, fmt, args);
}

ggl_status llm_arch_fail(ggl_error *err, ggl_status s, arch_place p, const char *chain,
                         const char *hint, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    s = llm_arch_failv(err, s, p, chain, hint, fmt, args);
    va_end(args);
    return s;
}
