/* Text in an SVG file. */
#ifndef TOOLS_SVG_TEXT_H
#define TOOLS_SVG_TEXT_H

#include <stdio.h>

/* Characters that XML has its own use for are written so that they show; control characters not at
 * all. */
void svg_put(FILE *out, const char *s);

#endif
