/* A string with a length. */
#ifndef GGL_STR_H
#define GGL_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n bytes at s, any of which may be 0; no NUL follows them. Functions that return one document who
 * owns the bytes. */
typedef struct ggl_str {
    const char *s;
    size_t n;
} ggl_str;

#endif
