/* The inputs of a verified model. */
#include "ggl/alloc.h"
#include "ggl/internal/graph.h"
#include "llm/internal/text_inputs.h"
#include "verify_impl.h"

static ggl_status put_input(verify *v, node_device *d, const llm_text_inputs *x,
                            const ggl_tensor *t) {
    void *value = ggl_calloc((size_t)(llm_text_input(x, t, NULL) * ggl_count(t)), sizeof(float));
    if (!value)
        return ggl_fail(v->err, GGL_NOMEM, "out of memory");
    llm_text_input(x, t, value);
    const ggl_status st = llm_node_device_put(d, t, value, v->err);
    ggl_free(value);
    return st;
}

ggl_status llm_verify_set_inputs(verify *v, node_device *d, const int32_t *token) {
    const llm_text_inputs x = {.token = token, .n = v->m.n};
    ggl_status st = GGL_OK;
    for (int i = 0; d->m && i < ggl_graph_n_inputs(v->g) && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_get_input(v->g, i);
        if (ggl_is_batched(t) && t->needed && llm_node_is_placed(d->m, t))
            st = put_input(v, d, &x, t);
    }
    return st;
}
