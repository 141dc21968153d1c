/* Decimal numbers as texts have them. The C library's strtod reads the decimal point of the program's locale; this does not.
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef GGL_NUMBER_H
#define GGL_NUMBER_H

#include <stddef.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The double nearest to the number that stands in the n bytes at s:
 *
 *     [+-] digits [. digits] [(e|E) [+-] digits]
 *
 * One of the two groups of digits before the exponent may be missing. Too large a number gives an infinity, too small a one 0. The caller
 * has checked the form: at any other byte the result is some number. Takes time linear in n, and no memory. */
double ggl_number_value(const char *s, size_t n);

/* How many of the n bytes at s are a number of this form; 0: s begins with none. The longest that fits is meant: of "1e+" it is 1. */
size_t ggl_number_length(const char *s, size_t n);

#ifdef __cplusplus
}
#endif

#endif
