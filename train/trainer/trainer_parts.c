/* What all graphs of a trainer have: weights that learn, and what has a gradient that the program gives. */
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/graph.h"
#include "trainer_impl.h"

ggl_tensor *llm_trainer_of_gradient(ggl_graph *g, const char *name, ggl_tensor *out, int64_t n) {
    ggl_tensor *gradient = ggl_graph_input(g, name, GGL_F32, 1, &n, true),
               *flat = ggl_reshape(g, out, 1, &n);
    return ggl_unary(g, GGL_OP_SUM, ggl_binary(g, GGL_OP_MUL, flat, gradient));
}

void llm_trainer_flatten(ggl_graph *g) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *w = ggl_graph_node(g, i);
        bool is = w->op == GGL_OP_WEIGHT && w->n_dims > GGL_BATCH_DIM;
        for (int k = i + 1; k < ggl_graph_n_nodes(g) && is; k++) {
            const ggl_tensor *reader = ggl_graph_node(g, k);
            for (int j = 0; j < reader->n_src && is; j++)
                is = reader->src[j] != w || reader->op == GGL_OP_RESHAPE;
        }
        if (!is)
            continue;
        w->ne[1] =
            ggl_extents(w->ne, 1, 3, 1); /* rows stay as they are, for types that go by them */
        w->ne[2] = w->ne[3];
        w->ne[3] = 1;
        w->n_dims = GGL_BATCH_DIM;
    }
}

int llm_trainer_let_learn(const llm_trainer *t, ggl_graph *g, ggl_tensor **weight,
                          ggl_tensor **copy) {
    int n = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *w = ggl_graph_node(g, i);
        llm_train_weight *of =
            w->op == GGL_OP_WEIGHT && w->name ? llm_train_weights_find(&t->weights, w->name) : NULL;
        if (!of ||
            w->data != of->origin) /* an adapter that does not learn may have the same names */
            continue;
        w->type = GGL_F32;
        w->data = of->data;
        w->variable = true;
        weight[n++] = w;
    }
    llm_train_copies_use(&t->weights, g, weight, n, copy);
    return n;
}
