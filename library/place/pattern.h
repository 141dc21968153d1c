/* Regular expressions on command lines: POSIX's extended ones, and what people write in other dialects. */
#ifndef LIBRARY_PATTERN_H
#define LIBRARY_PATTERN_H

#include <regex.h>
#include <stddef.h>

#include "ggl/status.h"

/* Compiles the n bytes at s, to be searched for in names; the caller frees *out with regfree. \d stands for a digit and (?:..) for a
 * group, which POSIX does not have. GGL_USAGE: s is not a regular expression. */
ggl_status llm_pattern(regex_t *out, const char *s, size_t n, ggl_error *err);

#endif
