/* Describes what quantizing made of a model: a row for each kind of tensor, a bar for each layer, whose
 * color is the type and whose height the error; and the bytes of each type. */
#ifndef TOOLS_REPORT_PLOT_H
#define TOOLS_REPORT_PLOT_H

#include "common/drawing.h"
#include "ggl/types.h"

typedef struct report_tensor {
    const char *name;
    const ggl_type_info *type;
    double bytes, elements;
    double error; /* relative: root of (squares of the differences / squares); negative: unknown */
} report_tensor;

/* GGL_NOMEM. */
GGL_NODISCARD ggl_status report_plot(drawing *d, const report_tensor *t, size_t n, ggl_error *err);

#endif
