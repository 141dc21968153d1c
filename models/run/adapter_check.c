/* llm_adapter_check: builds the model's graph with the adapter, and drops it. */
#include "llm/adapter.h"
#include "llm/model.h"

ggl_status llm_adapter_check(const llm_adapter *a, const llm_model *m, ggl_error *err) {
    const llm_adapter_use use = {a, 1};
    const int64_t n_ctx = llm_model_n_ctx(m);
    /* positions do not change what the adapter is compared with; a large context costs nothing */
    const ggl_graph_params gp = {.size = sizeof gp,
                                 .n_pos = n_ctx > 0 && n_ctx <= 1 << 30 ? n_ctx : 4096,
                                 .n_batch = 1,
                                 .n_slots = 1,
                                 .type_k = GGL_F16,
                                 .type_v = GGL_F16};
    const llm_arch_params ap = {.size = sizeof ap,
                                .n_ctx = gp.n_pos,
                                .ignore = llm_model_ignore(m),
                                .adapter = &use,
                                .n_adapters = 1};
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    ggl_graph *g = ggl_graph_new(&gp);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const ggl_status st = llm_arch_build(llm_model_arch(m), &source, &ap, g, NULL, err);
    ggl_graph_free(g);
    return st;
}
