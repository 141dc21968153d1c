/* Arrays that a caller gave. */
#ifndef LIBRARY_ARRAYS_H
#define LIBRARY_ARRAYS_H

#include <stddef.h>

#include "ggl/status.h"

/* Checks an array of n elements that a caller gave. GGL_USAGE: it, or one of its texts, is NULL. */
ggl_status llm_need_array(const char *name, const void *array, size_t n, ggl_error *err);
ggl_status llm_need_texts(const char *name, const char *const *text, size_t n, ggl_error *err);

#endif
