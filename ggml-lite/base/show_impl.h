/* Formatting of messages; private to ggml-lite. */
#ifndef GGL_SHOW_IMPL_H
#define GGL_SHOW_IMPL_H

#include "ggl/internal/show.h"

/* Like ggl_vformat, but does not escape the string argument whose pointer is `raw`: a message that
 * was escaped when it was formatted, and may have several lines. */
int ggl_vformat_raw(char *buf, size_t size, const char *raw, const char *fmt, va_list args);

#endif
