/* Texts in command-line arguments, with escapes as llama.cpp resolves them. */
#ifndef TOOLS_TEXTS_H
#define TOOLS_TEXTS_H

#include <stdbool.h>

#include "ggl/str.h"

/* Replaces \n \r \t \' \" \\ \xHH in place; other sequences stay. Returns the new length. */
size_t unescape(char *s, size_t n);

/* Returns copies of n arguments, resolved if `escape` is true; the caller frees them all with one
 * ggl_free. NULL: out of memory. */
ggl_str *read_texts(const char *const *args, size_t n, bool escape);

#endif
