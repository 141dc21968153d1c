#include "fuzz_eval.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"

#define MOST_BYTES ((size_t)64 << 20)
#define MOST_WORK  1e8 /* additions, about */
enum { BATCH = 2 };

/* Additions for one of the batch; a double, so that nothing can overflow. */
static double work_of(ggl_tensor *const *node, int n) {
    double work = 0;
    for (int i = 0; i < n; i++) {
        const ggl_tensor *t = node[i];
        double count = 1;
        for (int d = 0; d < GGL_MAX_DIMS; d++)
            count *= t->ne[d] > 0 ? (double)t->ne[d] : 1;
        if (t->op == GGL_OP_LINEAR || t->op == GGL_OP_RANK || t->op == GGL_OP_TOPK ||
            t->op == GGL_OP_SUM || t->op == GGL_OP_AMAX)
            for (int d = 0; d < (t->op == GGL_OP_LINEAR ? 1 : 3); d++)
                count *= (double)t->src[0]->ne[d];
        work += ggl_is_leaf(t) ? 0 : count;
        if (t->body)
            work += work_of(t->body->node, t->body->n_node);
    }
    return work;
}

static double work_of_graph(const ggl_graph *g) {
    double work = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        work += work_of(&t, 1);
    }
    return work;
}

static size_t bytes_of(const ggl_sched *s) {
    ggl_memory m;
    if (!ggl_sched_memory(s, 0, &m))
        return SIZE_MAX;
    const size_t part[] = {
        m.weights_copied, m.weights_repacked, m.stores_rows, m.stores_states, m.arena, m.io};
    size_t all = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        all = part[i] > MOST_BYTES ? MOST_BYTES + 1 : all + part[i];
    return all;
}

static ggl_status set_inputs(ggl_sched *s, const ggl_graph *g, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < ggl_graph_n_inputs(g) && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_get_input(g, i);
        int64_t n = ggl_is_batched(t) ? BATCH : 1;
        int32_t *data = calloc((size_t)(ggl_count(t) * n), sizeof *data); /* zeros of either type */
        if (!data)
            return GGL_NOMEM;
        const char *dot = strrchr(t->name, '.'),
                   *kind = dot ? dot + 1 : t->name; /* also of a stage's inputs */
        if (strcmp(kind, "pos") == 0 || strcmp(kind, "end") == 0)
            for (int32_t k = 0; k < n; k++)
                data[k] = kind[0] == 'p' ? k : BATCH;
        st = ggl_sched_set(s, t->name, data, (size_t)(ggl_count(t) * n) * sizeof *data, n, err);
        free(data);
    }
    return st;
}

static void run(ggl_graph *g, ggl_backend *b, ggl_error *err) {
    ggl_sched *s = NULL;
    const ggl_sched_params p = {.size = sizeof p, .backend = &b, .n_backends = 1};
    ggl_status st = ggl_sched_new(&s, g, &p, err);
    require(st == GGL_OK || (err->msg[0] && !s));
    if (st == GGL_OK && bytes_of(s) <= MOST_BYTES) {
        st = ggl_sched_alloc(s, err);
        if (st == GGL_OK)
            st = set_inputs(s, g, err);
        if (st == GGL_OK)
            st = ggl_sched_run(s, BATCH, NULL, 0, err);
        require(st == GGL_OK || err->msg[0]);
    }
    ggl_sched_free(s);
}

void fuzz_eval(ggl_graph *g) {
    ggl_error err = {0};
    static ggl_backend *reference, *cpu; /* once for all inputs */
    const ggl_backend_params one = {.size = sizeof one, .n_threads = 1};
    if (work_of_graph(g) > MOST_WORK)
        return;
    if (!cpu && (ggl_backend_open(&reference, "reference", NULL, &err) != GGL_OK ||
                 ggl_backend_open(&cpu, "cpu", &one, &err) != GGL_OK))
        return;
    ggl_status st = ggl_graph_fold(g, reference, &err);
    require(st == GGL_OK || err.msg[0]);
    if (st == GGL_OK)
        run(g, cpu, &err);
}
