/* Checks that llm_perplexity, llm_imatrix_run and llm_verify share. */
#ifndef LIBRARY_MEASURING_H
#define LIBRARY_MEASURING_H

#include <inttypes.h>

#include "ggl/internal/params.h"

enum { LEAST_WINDOW = 4, MOST_WINDOW = 1 << 30 }; /* tokens */

/* Checks the size of windows that the caller gave; 0: none was given. */
static inline ggl_status llm_check_window(int64_t n, ggl_error *err) {
    return n == 0 || (n >= LEAST_WINDOW && n <= MOST_WINDOW)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "n_window must be 0, or %d to %d, but is %" PRId64,
                          LEAST_WINDOW, MOST_WINDOW, n);
}

/* Checks the caller's struct for the result before anything is computed for it. */
#define CHECK_RESULT(type, result, err)                                                            \
    ((result) ? GGL_WRITE_PARAMS(type, result, &(const type){.size = sizeof(type)}, err)           \
              : ggl_fail(err, GGL_USAGE, "result is NULL"))

#endif
