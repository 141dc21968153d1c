/* Text in an SVG file. */
#ifndef TOOLS_SVG_TEXT_H
#define TOOLS_SVG_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* The fonts of pictures, for the CSS property font-family, and of numbers in them. */
#define SVG_FONT "Inter,'Segoe UI',Helvetica,Arial,sans-serif"
#define SVG_MONO "'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"

typedef enum svg_face { SVG_PLAIN, SVG_BOLD, SVG_FIXED } svg_face;

/* Writes text, or a value of an attribute, with XML's special characters escaped, without control
 * characters; bytes that are not UTF-8 become U+FFFD. */
void svg_put(FILE *out, const char *s);

/* Returns the width of a text in a font of that size, of the widest of the usual fonts: what has
 * this room does not touch its neighbour, whatever font the reader's machine has. */
double svg_text_width(const char *s, double size, svg_face face);

/* Writes s to buf, shortened with "..." to fit a width and the buffer of at least 8 bytes; returns
 * buf. */
const char *svg_fit(const char *s, double size, svg_face face, double width, char *buf, size_t n);

#endif
