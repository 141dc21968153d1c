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

/* Elements first .. first + n - 1 of a weight. */
typedef struct piece {
    const llm_train_weight *w;
    int64_t first, n;
} piece;

static ggl_tensor *variable(ggl_graph *g, const piece *p, float *data) {
    return ggl_graph_variable(g, p->w->name, GGL_F32, 1, &p->n, data + p->first);
}

static void step_one(ggl_graph *g, const piece *of, ggl_tensor *const *in,
                     const llm_train_params *p) {
    const llm_train_weight *w = of->w;
    ggl_tensor *x = variable(g, of, w->data), *mean = variable(g, of, w->mean),
               *square = variable(g, of, w->square),
               *grad = ggl_binary(g, GGL_OP_MUL, variable(g, of, w->grad), in[ADAMW_SHORTEN]);
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

/* Returns the most elements of a piece: what a piece computes stays in the core's cache until its last node, and takes little memory;
 * and there are not too many nodes. */
static int64_t piece_size(const train_weights *list) {
    enum { IN_CACHE = 1 << 17, MOST_PIECES = 1024 };
    int64_t all = 0;
    for (int k = 0; k < list->n; k++)
        all += ggl_extents(list->at[k].w.ne, 0, GGL_MAX_DIMS, 1);
    return all / MOST_PIECES > IN_CACHE ? all / MOST_PIECES : IN_CACHE;
}

ggl_status llm_train_adamw(train_plan *p, const train_weights *list, const llm_train_params *of,
                           ggl_error *err) {
    ggl_graph *g = p->g = ggl_graph_new(NULL);
    ggl_tensor *in[ADAMW_INPUTS];
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a graph");
    for (int k = 0; k < ADAMW_INPUTS; k++)
        in[k] = ggl_graph_input(g, llm_train_adamw_input[k], GGL_F32, 0, NULL, false);
    const int64_t most = piece_size(list);
    for (int k = 0; k < list->n; k++) {
        const int64_t n = ggl_extents(list->at[k].w.ne, 0, GGL_MAX_DIMS, 1);
        piece next = {.w = &list->at[k].w};
        for (; next.first < n; next.first += most) {
            next.n = n - next.first < most ? n - next.first : most;
            step_one(g, &next, in, of);
        }
    }
    ggl_graph_output(
        g, "by",
        ggl_binary(g, GGL_OP_MUL, in[ADAMW_RATE], in[ADAMW_SHORTEN])); /* a graph needs one */
    return llm_train_plan(p, of, err);
}
