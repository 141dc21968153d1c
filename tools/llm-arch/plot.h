/* Draws figures as a picture: one SVG file. */
#ifndef TOOLS_ARCH_PLOT_H
#define TOOLS_ARCH_PLOT_H

#include <stdio.h>

#include "figure.h"

/* Draws figures below each other. name: the descriptor; of: the model, or which made-up one; backend: the one it
 * runs on. GGL_NOMEM. GGL_LIMIT: too many nodes for a picture. Nothing is written after an error. */
GGL_NODISCARD ggl_status figure_draw(FILE *out, const figure *f, int n, const char *name,
                                     const char *of, const char *backend, ggl_error *err);

#endif
