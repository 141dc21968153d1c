/* What the calls that measure share. */
#ifndef LIBRARY_MEASURING_H
#define LIBRARY_MEASURING_H

#include "ggl/internal/params.h"

enum { MOST_WINDOW = 1 << 30 }; /* tokens */

/* Checks the caller's struct for the result before anything is computed for it. */
#define CHECK_RESULT(type, result, err)                                                            \
    ((result) ? GGL_WRITE_PARAMS(type, result, &(const type){.size = sizeof(type)}, err)           \
              : ggl_fail(err, GGL_USAGE, "result is NULL"))

#endif
