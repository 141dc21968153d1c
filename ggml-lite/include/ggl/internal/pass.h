/* Passes on an error that something else has described.
 *
 * Threads: any, each with errors of its own. */
#ifndef GGL_INTERNAL_PASS_H
#define GGL_INTERNAL_PASS_H

#include "ggl/status.h"

/* Makes *err (which may be NULL) the error *why, and returns its status. Its lines stay lines: ggl_fail(err, st, "%s", why->msg) would show their
 * ends as \x0a. */
static inline ggl_status ggl_pass(ggl_error *err, const ggl_error *why) {
    if (err)
        *err = *why;
    return why->status;
}

#endif
