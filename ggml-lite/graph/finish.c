/* Ends the building of a graph. */
#include <assert.h>

#include "graph_impl.h"

ggl_status ggl_graph_finish(ggl_graph *g, ggl_error *err) {
    if (g->body)
        ggl_graph_fail(g, GGL_USAGE, "a body was begun but not ended");
    if (g->error.status == GGL_OK && g->outputs.n == 0)
        ggl_graph_fail(g, GGL_USAGE, "the graph has no output");
    if (g->error.status != GGL_OK)
        return ggl_graph_error(g, err);
    ggl_graph_mark(g);
    for (size_t i = 0; i < g->outputs.n; i++) {
        const char *fault = ggl_output_fault(g->outputs.at[i]); /* types are known by now */
        if (fault)
            return ggl_fail(err, GGL_USAGE, "output '%s' %s", g->outputs.at[i]->name, fault);
        assert(g->outputs.at[i]->type == GGL_F32);
    }
    if (!ggl_graph_size_stores(g))
        return ggl_graph_error(g, err);
    g->finished = true;
    return GGL_OK;
}
