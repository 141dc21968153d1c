/* Backends that pretend: the reference under another name, which logs its runs. A test may replace
 * more of its functions. */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include <pthread.h>

#include "ggl/backends.h"
#include "test.h"

enum { MOST_RUNS = 128 };

typedef struct fake {
    ggl_backend base; /* the reference's functions, some of them replaced */
    ggl_backend_vtable v;
    ggl_backend *real;
    char name;
} fake;

static char fake_log[2 * MOST_RUNS +
                     1]; /* "a4b4": which backend ran, with how many elements of the batch */
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER; /* of the log */
static size_t fake_n_too_large;

static ggl_status fake_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                           ggl_error *err) {
    const fake *f = (const fake *)b;
    pthread_mutex_lock(&fake_lock);
    size_t used = strlen(fake_log);
    if (used + 3 < sizeof fake_log)
        snprintf(fake_log + used, sizeof fake_log - used, "%c%d", f->name, (int)n);
    pthread_mutex_unlock(&fake_lock);
    return f->real->v->run(f->real, p, region, n, err);
}

static ggl_status fake_alloc(ggl_backend *b, int region, size_t size, const void *host,
                             ggl_buffer **out, ggl_error *err) {
    const fake *f = (const fake *)b;
    if (host)
        return ggl_fail(err, GGL_UNSUPPORTED, "no import");
    fake_n_too_large += b->max_buffer && size > b->max_buffer;
    return f->real->v->alloc(f->real, region, size, NULL, out, err);
}

/* Values between operators are f32, so that the bits do not depend on where segments end. */
static bool fake_open(fake *f, char name) {
    const ggl_backend_params p = {.size = sizeof p, .mask = "f64"};
    ggl_error err = {0};
    *f = (fake){.name = name};
    if (!CHECK_OK(ggl_backend_open(&f->real, "reference", &p, &err), &err))
        return false;
    f->v = *f->real->v;
    f->v.run = fake_run;
    f->v.alloc = fake_alloc;
    f->base = *f->real;
    f->base.v = &f->v;
    snprintf(f->base.name, sizeof f->base.name, "fake %c", name);
    return true;
}

static void fake_close(fake *f) {
    ggl_backend_close(f->real);
}

/* --- models ----------------------------------------------------------------------------------- */

/* The sum of x, a vector, over the sequence so far. */
static inline ggl_tensor *running_sum(ggl_graph *g, ggl_tensor *x) {
    const double width = (double)x->ne[0];
    ggl_tensor **param = ggl_body_begin(g, &x, 1);
    if (!param)
        return NULL;
    ggl_tensor *in = param[0], *s = ggl_graph_op(g, GGL_OP_STATE, NULL, 0, &width, 1);
    ggl_tensor *next = ggl_binary(g, GGL_OP_ADD, s, in);
    ggl_graph_op(g, GGL_OP_KEEP, (ggl_tensor *[]){s, next}, 2, NULL, 0);
    return ggl_body_end(g, NULL, next, NULL, 0);
}

/* Layer k runs on backend k. */
static inline int by_layer(void *ctx, int group, const char *name) {
    (void)ctx;
    (void)name;
    return group;
}

#endif
