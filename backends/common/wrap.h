/* A backend that wraps another one. All calls are passed to the inner backend, whose buffers and
 * plans it uses, so that a wrapper replaces only the functions it is for. Each wrapper has a vtable
 * of its own, because inner backends may or may not have the repack functions. */
#ifndef BACKENDS_WRAP_H
#define BACKENDS_WRAP_H

#include "ggl/backend.h"

typedef struct wrap {
    ggl_backend base;
    ggl_backend_vtable v;
    ggl_backend *inner; /* owned */
} wrap;

static inline ggl_backend *wrap_inner(const ggl_backend *b) {
    return ((const wrap *)b)->inner;
}

/* Fills in the wrapper, which has the name of the inner backend, and its vtable, except close. */
void ggl_wrap_init(wrap *w, ggl_backend *inner);

/* Compiles a segment on the inner backend, and passes the wrapper's cancelled() on to it. */
ggl_status ggl_wrap_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err);
/* Runs a plan on the inner backend, and passes the wrapper's cancelled() and reads() on to it. */
ggl_status ggl_wrap_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                        ggl_error *err);

#endif
