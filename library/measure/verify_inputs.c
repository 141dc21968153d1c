/* The inputs of a verified model. */
#include <string.h>

#include "ggl/internal/graph.h"
#include "verify_impl.h"

static ggl_status set_input(verify *v, node_device *d, const char *name, const int32_t *data) {
    const ggl_tensor *t = ggl_graph_find_input(v->g, name);
    return t ? llm_node_device_put(d, t, data, v->err) : GGL_OK;
}

/* Sets the inputs of a device, if it is open. */
ggl_status llm_verify_set_inputs(verify *v, node_device *d, const int32_t *token,
                                 int32_t *scratch) {
    if (!d->m)
        return GGL_OK;
    ggl_status st = set_input(v, d, "token", token);
    memset(scratch, 0, (size_t)v->m.n * sizeof *scratch);
    if (st == GGL_OK)
        st = set_input(v, d, "slot", scratch);
    for (int32_t i = 0; i < v->m.n; i++)
        scratch[i] = i;
    if (st == GGL_OK)
        st = set_input(v, d, "pos", scratch);
    for (int64_t i = 0; i < v->m.n; i++)
        scratch[i] = (int32_t)v->m.n;
    return st == GGL_OK ? set_input(v, d, "end", scratch) : st;
}
