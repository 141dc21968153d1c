/* A step of AdamW (Loshchilov and Hutter, 2019), as a graph:
 *
 *     g = shorten g
 *     mean = beta1 mean + (1 - beta1) g
 *     square = beta2 square + (1 - beta2) g g
 *     w = w - rate (mean mean_by / (sqrt(square square_by) + eps) + decay w)
 *
 * mean_by and square_by, 1 / (1 - beta ** steps), make up for the zeros with which both begin. */
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "train_impl.h"

const char *const llm_train_adamw_input[ADAMW_INPUTS] = {
    [ADAMW_RATE] = "rate",
    [ADAMW_SHORTEN] = "shorten",
    [ADAMW_MEAN_BY] = "mean_by",
    [ADAMW_SQUARE_BY] = "square_by",
};

static ggl_tensor *times(ggl_graph *g, ggl_tensor *a, double x) {
    return ggl_binary(g, GGL_OP_MUL, a, ggl_graph_number(g, x));
}

static ggl_tensor *variable(ggl_graph *g, const llm_train_weight *w, float *data) {
    return ggl_graph_variable(g, w->name, GGL_F32, w->n_dims, w->ne, data);
}

static void step_one(ggl_graph *g, const llm_train_weight *w, ggl_tensor *const *in,
                     const llm_train_params *p) {
    ggl_tensor *x = variable(g, w, w->data), *mean = variable(g, w, w->mean),
               *square = variable(g, w, w->square),
               *grad = ggl_binary(g, GGL_OP_MUL, variable(g, w, w->grad), in[ADAMW_SHORTEN]);
    ggl_tensor *m = ggl_binary(g, GGL_OP_ADD, times(g, mean, p->beta1),
                               times(g, grad, 1 - p->beta1)),
               *s = ggl_binary(g, GGL_OP_ADD, times(g, square, p->beta2),
                               times(g, ggl_binary(g, GGL_OP_MUL, grad, grad), 1 - p->beta2));
    ggl_tensor *root = ggl_unary(g, GGL_OP_SQRT, ggl_binary(g, GGL_OP_MUL, s, in[ADAMW_SQUARE_BY])),
               *to = ggl_binary(g, GGL_OP_DIV, ggl_binary(g, GGL_OP_MUL, m, in[ADAMW_MEAN_BY]),
                                ggl_binary(g, GGL_OP_ADD, root, ggl_graph_number(g, p->eps)));
    if (p->decay > 0 && w->n_dims > 1)
        to = ggl_binary(g, GGL_OP_ADD, to, times(g, x, p->decay));
    to = ggl_binary(g, GGL_OP_SUB, x, ggl_binary(g, GGL_OP_MUL, to, in[ADAMW_RATE]));
    ggl_graph_assign(g, mean, m);
    ggl_graph_assign(g, square, s);
    ggl_graph_assign(g, x, to);
}

ggl_status llm_train_adamw(train_plan *p, const train_weights *list, const llm_train_params *of,
                           ggl_error *err) {
    ggl_graph *g = p->g = ggl_graph_new(NULL);
    ggl_tensor *in[ADAMW_INPUTS];
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a graph");
    for (int k = 0; k < ADAMW_INPUTS; k++)
        in[k] = ggl_graph_input(g, llm_train_adamw_input[k], GGL_F32, 0, NULL, false);
    for (int k = 0; k < list->n; k++)
        step_one(g, &list->at[k].w, in, of);
    ggl_graph_output(
        g, "by",
        ggl_binary(g, GGL_OP_MUL, in[ADAMW_RATE], in[ADAMW_SHORTEN])); /* a graph needs one */
    return llm_train_plan(p, of, err);
}
