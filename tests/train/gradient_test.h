/* What the tests of gradients share. */
#ifndef GRADIENT_TEST_H
#define GRADIENT_TEST_H

#include "ggl/backends.h"
#include "ggl/graph.h"
#include "ggl/internal/graph.h"
#include "test.h"

static uint64_t state;
static inline double draw(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Adds up all elements of x. */
static inline ggl_tensor *sum_all(ggl_graph *g, ggl_tensor *x) {
    const int64_t n = ggl_count(x);
    return ggl_unary(g, GGL_OP_SUM, ggl_reshape(g, x, 1, &n));
}

static inline ggl_tensor *with(ggl_graph *g, ggl_op op, ggl_tensor *x, int n, const double *num) {
    return ggl_graph_op(g, op, &x, x ? 1 : 0, num, n);
}

/* Attention over q, k, v of these options; NULL: absent. */
static inline ggl_tensor *attend(ggl_graph *g, ggl_tensor *q, ggl_tensor *k, ggl_tensor *v,
                                 double scale, double window, double cap, ggl_tensor *sinks,
                                 ggl_tensor *alibi, ggl_tensor *bias, ggl_tensor *within) {
    ggl_tensor *kv = ggl_binary(g, GGL_OP_CACHE, k, v);
    ggl_tensor *src[9] = {q, kv, sinks, alibi, bias, NULL, NULL, NULL, within};
    return ggl_graph_op(g, GGL_OP_ATTEND, src, 9, (double[]){scale, window, cap}, 3);
}

static inline ggl_backend *opened(const char *name, int n_threads, const char *mask) {
    ggl_backend *b = NULL;
    ggl_error err;
    const ggl_backend_params p = {
        .size = sizeof p, .n_threads = n_threads, .n_threads_batch = n_threads, .mask = mask};
    CHECK_OK(ggl_backend_open(&b, name, &p, &err), &err);
    return b;
}

/* Frees a graph that has failed with these words. */
static inline void refused(ggl_graph *g, const char *words) {
    ggl_error err = {0};
    CHECK(ggl_graph_error(g, &err) != GGL_OK);
    CHECK_HAS(err.msg, words);
    ggl_graph_free(g);
}

#endif
