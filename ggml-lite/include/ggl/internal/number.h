/* Decimal numbers as texts have them. The C library's strtod reads the decimal point of the program's locale; this does not.
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef GGL_NUMBER_H
#define GGL_NUMBER_H

#include <stdbool.h>
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

enum { GGL_NUMBER_TEXT = 32 };

/* Writes x with the fewest digits that are read as x again, in the form of "%g": 0.1, 1e-05, nan. is_f32: that are read as the f32 nearest to
 * x, so that an f32 of 0.1 is 0.1 and not 0.10000000149. Returns text. The decimal point is that of the program's locale. */
const char *ggl_number_shortest(char text[GGL_NUMBER_TEXT], double x, bool is_f32);

#ifdef __cplusplus
}
#endif

#endif
