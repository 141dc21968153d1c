#include "svg_text.h"

void svg_put(FILE *out, const char *s) {
    for (; *s; s++)
        if (*s == '<' || *s == '>' || *s == '&')
            fputs(*s == '<' ? "&lt;" : *s == '>' ? "&gt;" : "&amp;", out);
        else if ((unsigned char)*s >= ' ')
            putc(*s, out);
}
