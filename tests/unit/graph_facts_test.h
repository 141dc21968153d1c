/* A graph that runs on one backend, for tests of what graphs derive about their nodes. */
#ifndef GRAPH_FACTS_TEST_H
#define GRAPH_FACTS_TEST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"
#include "ggl/program.h"
#include "ggl/sched.h"
#include "test.h"

static const char *const backends[] = {"cpu", "reference"};

typedef struct fixture {
    ggl_graph *g;
    ggl_backend *b;
    ggl_sched *s;
    ggl_error err;
} fixture;

static inline bool begin(fixture *f) {
    *f = (fixture){0};
    f->g = ggl_graph_new(&(ggl_graph_params){.size = sizeof(ggl_graph_params),
                                             .n_pos = 64,
                                             .n_batch = 4,
                                             .n_slots = 1,
                                             .type_k = GGL_F32,
                                             .type_v = GGL_F32});
    ggl_graph_input(f->g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(f->g, "slot", GGL_I32, 0, NULL, true);
    return f->g != NULL;
}

static inline bool start(fixture *f, const char *backend, ggl_tensor *y) {
    ggl_graph_output(f->g, "y", y);
    return CHECK_OK(ggl_graph_finish(f->g, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(&f->b, backend, NULL, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_new(&f->s, f->g,
                                  &(ggl_sched_params){.size = sizeof(ggl_sched_params),
                                                      .backend = &f->b,
                                                      .n_backends = 1},
                                  &f->err),
                    &f->err) &&
           CHECK_OK(ggl_sched_alloc(f->s, &f->err), &f->err);
}

static inline void end(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    if (f->b)
        ggl_backend_close(f->b);
}

static inline bool set(fixture *f, const char *name, const void *data, int n) {
    const ggl_tensor *t = ggl_graph_find_input(f->g, name);
    size_t size = 0;
    return CHECK(t && ggl_value_bytes(t, n, &size)) &&
           CHECK_OK(ggl_sched_set(f->s, name, data, size, n, &f->err), &f->err);
}

static inline bool set_places(fixture *f, int n) {
    const int32_t pos[4] = {0, 1, 2, 3}, slot[4] = {0};
    return set(f, "pos", pos, n) && set(f, "slot", slot, n);
}

#endif
