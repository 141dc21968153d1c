#include "toy_run.h"

#include <string.h>

#include "ggl/fold.h"

bool toy_open(toy_model *t, const char *name, const char *text, size_t n, int variant,
              ggl_error *err) {
    *t = (toy_model){0};
    if (llm_arch_parse(&t->arch, text, n, name, err) != GGL_OK)
        return false;
    t->toy = llm_arch_toy_new(t->arch, variant, err);
    if (t->toy)
        return true;
    toy_close(t);
    return false;
}

void toy_close(toy_model *t) {
    llm_arch_toy_free(t->toy);
    llm_arch_free(t->arch);
    *t = (toy_model){0};
}

static int place(void *ctx, int group, const char *weight) {
    const toy_run *r = ctx;
    (void)weight;
    return r->split >= 0 && group >= r->split;
}

bool toy_start(toy_run *r, const toy_model *t, ggl_backend *const *backend, int n_backends,
               ggl_backend *fold, int split, ggl_type kv, ggl_error *err) {
    *r = (toy_run){.split = split};
    return toy_start_placed(r, t, backend, n_backends, fold, place, r, kv, err);
}

bool toy_start_placed(toy_run *r, const toy_model *t, ggl_backend *const *backend, int n_backends,
                      ggl_backend *fold, int (*where)(void *, int, const char *), void *ctx,
                      ggl_type kv, ggl_error *err) {
    r->graph = NULL;
    r->sched = NULL;
    ggl_graph_params p = {
        .n_pos = TOY_CTX, .n_batch = TOY_BATCH, .n_slots = TOY_SLOTS, .type_k = kv, .type_v = kv};
    llm_arch_result built = {0};
    r->graph = ggl_graph_new(&p);
    bool ok = r->graph && llm_arch_build(t->arch, llm_arch_toy_source(t->toy), NULL, r->graph,
                                         &built, err) == GGL_OK;
    r->n_vocab = built.n_vocab;
    llm_arch_result_fini(&built);
    ggl_sched_params sp = {
        .backend = backend, .n_backends = n_backends, .place = where, .ctx = ctx};
    ok = ok && ggl_graph_finish(r->graph, err) == GGL_OK &&
         ggl_graph_fold(r->graph, fold, err) == GGL_OK &&
         ggl_sched_new(&r->sched, r->graph, &sp, err) == GGL_OK &&
         ggl_sched_alloc(r->sched, err) == GGL_OK;
    if (!ok)
        toy_stop(r);
    return ok;
}

void toy_stop(toy_run *r) {
    ggl_sched_free(r->sched);
    ggl_graph_free(r->graph);
    *r = (toy_run){0};
}

bool toy_eval(toy_run *r, int slot, int first, int n, float *logits, ggl_error *err) {
    int32_t token[TOY_BATCH], pos[TOY_BATCH], slots[TOY_BATCH];
    for (int i = 0; i < n; i++) {
        pos[i] = first + i;
        slots[i] = slot;
        token[i] = (int32_t)((uint32_t)(first + i) * 2654435761u >> 7) % (int32_t)r->n_vocab;
        if (token[i] < 0)
            token[i] += (int32_t)r->n_vocab;
    }
    if (ggl_sched_set(r->sched, "token", token, n, err) != GGL_OK ||
        ggl_sched_set(r->sched, "pos", pos, n, err) != GGL_OK ||
        ggl_sched_set(r->sched, "slot", slots, n, err) != GGL_OK ||
        (logits ? ggl_sched_run(r->sched, n, NULL, 0, err)
                : ggl_sched_push(r->sched, n, NULL, err)) != GGL_OK)
        return false;
    if (logits)
        memcpy(logits, ggl_sched_output(r->sched, 0),
               (size_t)n * (size_t)r->n_vocab * sizeof *logits);
    return true;
}

bool toy_prompt(toy_run *r, int slot, int n, int chunk, float *logits, ggl_error *err) {
    if (ggl_sched_clear_slot(r->sched, slot, err) != GGL_OK)
        return false;
    for (int i = 0, k; i < n; i += k) {
        k = n - i < chunk ? n - i : chunk;
        if (!toy_eval(r, slot, i, k, logits ? logits + (size_t)i * (size_t)r->n_vocab : NULL, err))
            return false;
    }
    return true;
}
