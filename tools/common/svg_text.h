/* Text in an SVG file. */
#ifndef TOOLS_SVG_TEXT_H
#define TOOLS_SVG_TEXT_H

#include <stdio.h>

/* Writes text with XML's special characters escaped and without control characters. */
void svg_put(FILE *out, const char *s);

#endif
