/* A graph and its schedule. */
#include "ggl/internal/fold.h"
#include "ggl/internal/sched.h"
#include "train_impl.h"

void llm_train_plan_fini(train_plan *p) {
    ggl_sched_free(p->s);
    ggl_graph_free(p->g);
    *p = (train_plan){0};
}

size_t llm_train_plan_bytes(const train_plan *p) {
    ggl_memory m = {0};
    return p->s && ggl_sched_memory(p->s, 0, &m) > 0
               ? m.arena + m.io + m.stores_rows + m.stores_states
               : 0;
}

ggl_status llm_train_plan(train_plan *p, const llm_train_params *of, int64_t n_rows,
                          ggl_error *err) {
    const ggl_sched_params params = {.size = sizeof params,
                                     .backend = (ggl_backend *const *)&of->backend,
                                     .n_backends = 1,
                                     .n_rows = n_rows,
                                     .no_repack = true,
                                     .cancelled = of->cancelled,
                                     .cancelled_ctx = of->cancelled_ctx,
                                     .forgets = true /* texts are whole in a run */};
    ggl_status st = ggl_graph_finish(p->g, err);
    if (st == GGL_OK)
        st = ggl_graph_fold_by(p->g, of->reference, of->backend, err);
    if (st == GGL_OK)
        st = ggl_sched_new(&p->s, p->g, &params, err);
    return st == GGL_OK ? ggl_sched_alloc(p->s, err) : st;
}
