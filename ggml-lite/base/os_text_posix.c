/* ggl_find_bytes (text.h) where the C library has it. */
#include <string.h>

#include "ggl/internal/text.h"

void *ggl_find_bytes(const void *s, size_t n, const void *what, size_t n_what) {
    return memmem(s, n, what, n_what);
}
