/* llm_adapter_check, llm_adapter_factors: build the model's graph, and drop it. */
#include "llm/internal/adapter.h"
#include "llm/internal/model.h"

static ggl_status build(const llm_model *m, llm_arch_params ap, ggl_error *err) {
    const int64_t n_ctx = llm_model_n_ctx(m);
    /* positions do not change what the adapter is compared with; a large context costs nothing */
    const ggl_graph_params gp = {.size = sizeof gp,
                                 .n_pos = n_ctx > 0 && n_ctx <= 1 << 30 ? n_ctx : 4096,
                                 .n_batch = 1,
                                 .n_slots = 1,
                                 .type_k = GGL_F16,
                                 .type_v = GGL_F16};
    ap.size = sizeof ap;
    ap.n_ctx = gp.n_pos;
    ap.ignore = llm_model_ignore(m);
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    ggl_graph *g = ggl_graph_new(&gp);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const ggl_status st = llm_arch_build(llm_model_arch(m), &source, &ap, g, NULL, err);
    ggl_graph_free(g);
    return st;
}

ggl_status llm_adapter_check(const llm_adapter *a, const llm_model *m, ggl_error *err) {
    const llm_adapter_use use = {.adapter = a, .scale = 1};
    return build(m, (llm_arch_params){.adapter = &use, .n_adapters = 1}, err);
}

ggl_status llm_adapter_factors(const llm_model *m,
                               void (*fn)(void *ctx, const char *weight, const char *factor),
                               void *ctx, ggl_error *err) {
    return build(m, (llm_arch_params){.scaled = fn, .ctx = ctx}, err);
}
