/* The inputs of a verified model. */
#include "ggl/internal/graph.h"
#include "llm/internal/text_inputs.h"
#include "verify_impl.h"

ggl_status llm_verify_set_inputs(verify *v, node_device *d, const int32_t *token,
                                 int32_t *scratch) {
    const llm_text_inputs x = {.token = token, .n = v->m.n};
    ggl_status st = GGL_OK;
    for (int i = 0; d->m && i < ggl_graph_n_inputs(v->g) && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_get_input(v->g, i);
        if (!ggl_is_batched(t) || !llm_node_is_placed(d->m, t))
            continue;
        llm_text_input(&x, t->name, scratch);
        st = llm_node_device_put(d, t, scratch, v->err);
    }
    return st;
}
