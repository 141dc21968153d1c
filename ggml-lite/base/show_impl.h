/* Private to ggml-lite. */
#ifndef GGL_SHOW_IMPL_H
#define GGL_SHOW_IMPL_H

#include "ggl/show.h"

/* ggl_vformat, but the string argument `raw` (the pointer) is taken as it is: a message that was
 * formatted before, and may have several lines. */
int ggl_vformat_raw(char *buf, size_t size, const char *raw, const char *fmt, va_list args);

#endif
