/* A backend around another one. Everything goes to the inner backend as it is, buffers too, so that
 * a wrapper replaces only what it is for. The vtable is the wrapper's own, as what the inner
 * backend has of layouts differs. */
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

/* Named "prefix:NAME". All of the vtable but close is there afterwards. */
void ggl_wrap_init(wrap *w, ggl_backend *inner, const char *prefix);

/* Runs the inner backend, which is cancelled when the wrapper is. */
ggl_status ggl_wrap_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                        ggl_error *err);

#endif
