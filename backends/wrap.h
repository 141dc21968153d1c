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
void wrap_init(wrap *w, ggl_backend *inner, const char *prefix);

/* Before a run of the inner backend: it is cancelled when the wrapper is. */
void wrap_pass_cancelled(ggl_backend *b);

#endif
