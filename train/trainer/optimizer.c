/* A step of the optimizer, as a graph. With g the gradient, shortened to max_norm:
 *
 * AdamW (Loshchilov and Hutter, 2019)
 *
 *     mean = beta1 mean + (1 - beta1) g
 *     square = beta2 square + (1 - beta2) g g
 *     w = w - rate (mean mean_by / (sqrt(square square_by) + eps) + decay w)
 *
 * mean_by and square_by, 1 / (1 - beta ** steps), make up for the zeros with which both begin.
 *
 * SGD with momentum
 *
 *     mean = beta1 mean + g
 *     w = w - rate (mean + decay w)
 *
 * Muon (Jordan et al., 2024), for the matrices of layers; all others learn by AdamW. The step has the directions of the gradient, but
 * all with the same length: five steps of Newton and Schulz bring the singular values near 1. 0.2 sqrt(longer side) makes it as long
 * as a step of AdamW (Liu et al., 2025).
 *
 *     mean = beta1 mean + g
 *     x = (g + beta1 mean) / (length of it)
 *     five times: a = x x^T, x = 3.4445 x + (-4.775 a + 2.0315 a a) x
 *     w = w - rate (0.2 sqrt(max(n_in, n_out)) x + decay w) */
#include <math.h>
#include <string.h>

#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "train_impl.h"

const char *const llm_train_step_input[STEP_INPUTS] = {
    [STEP_RATE] = "rate",
    [STEP_SHORTEN] = "shorten",
    [STEP_MEAN_BY] = "mean_by",
    [STEP_SQUARE_BY] = "square_by",
};

/* What the step of a weight, or of a piece of it, is made of. */
typedef struct update {
    ggl_graph *g;
    const llm_train_weight *w;
    int64_t first,
        n; /* its elements first .. first + n - 1, as a vector; n 0: the whole weight, in its shape */
    const llm_train_params *p;
    ggl_tensor *const *in;
    ggl_tensor *x, *mean, *square, *grad;
} update;

static ggl_tensor *times(const update *u, ggl_tensor *a, double x) {
    return ggl_binary(u->g, GGL_OP_MUL, a, ggl_graph_number(u->g, x));
}

static ggl_tensor *plus(const update *u, ggl_tensor *a, ggl_tensor *b) {
    return ggl_binary(u->g, GGL_OP_ADD, a, b);
}

static ggl_tensor *variable(const update *u, float *data) {
    return u->n > 0 ? ggl_graph_variable(u->g, u->w->name, GGL_F32, 1, &u->n, data + u->first)
                    : ggl_graph_variable(u->g, u->w->name, GGL_F32, u->w->n_dims, u->w->ne, data);
}

/* The last line: w - rate (by + decay w). */
static void go(const update *u, ggl_tensor *by) {
    if (u->p->decay > 0 && u->w->n_dims > 1)
        by = plus(u, by, times(u, u->x, u->p->decay));
    by = ggl_binary(u->g, GGL_OP_MUL, by, u->in[STEP_RATE]);
    ggl_graph_assign(u->g, u->x, ggl_binary(u->g, GGL_OP_SUB, u->x, by));
}

static void adamw(const update *u) {
    ggl_graph *g = u->g;
    const double beta1 = u->p->beta1, beta2 = u->p->beta2;
    ggl_tensor *m = plus(u, times(u, u->mean, beta1), times(u, u->grad, 1 - beta1)),
               *s = plus(u, times(u, u->square, beta2),
                         times(u, ggl_binary(g, GGL_OP_MUL, u->grad, u->grad), 1 - beta2)),
               *root =
                   ggl_unary(g, GGL_OP_SQRT, ggl_binary(g, GGL_OP_MUL, s, u->in[STEP_SQUARE_BY])),
               *by = ggl_binary(g, GGL_OP_DIV, ggl_binary(g, GGL_OP_MUL, m, u->in[STEP_MEAN_BY]),
                                plus(u, root, ggl_graph_number(g, u->p->eps)));
    ggl_graph_assign(g, u->mean, m);
    ggl_graph_assign(g, u->square, s);
    go(u, by);
}

static void sgd(const update *u) {
    ggl_tensor *m = plus(u, times(u, u->mean, u->p->beta1), u->grad);
    ggl_graph_assign(u->g, u->mean, m);
    go(u, m);
}

static ggl_tensor *turned(const update *u, ggl_tensor *x) {
    const double dims[2] = {0, 1};
    return ggl_graph_op(u->g, GGL_OP_TRANSPOSE, &x, 1, dims, 2);
}

/* Brings the singular values of x [n_in, n_out <= n_in] near 1. */
static ggl_tensor *newton_schulz(const update *u, ggl_tensor *x) {
    ggl_graph *g = u->g;
    const double along = 1;
    ggl_tensor *sum = ggl_unary(g, GGL_OP_SUM, ggl_binary(g, GGL_OP_MUL, x, x)),
               *all = ggl_graph_op(g, GGL_OP_SUM, &sum, 1, &along, 1),
               *length = plus(u, ggl_unary(g, GGL_OP_SQRT, all), ggl_graph_number(g, 1e-7));
    x = ggl_binary(g, GGL_OP_DIV, x, length);
    for (int i = 0; i < 5; i++) {
        ggl_tensor *a = ggl_linear(g, x, x, NULL), /* symmetric, as its square */
            *b = plus(u, times(u, a, -4.775), times(u, ggl_linear(g, a, a, NULL), 2.0315));
        ggl_tensor *back[] = {b, x}; /* b x */
        x = plus(u, times(u, x, 3.4445), ggl_graph_op(g, GGL_OP_LINEAR_BACK, back, 2, NULL, 0));
    }
    return x;
}

static void muon(const update *u) {
    const int64_t n_in = u->w->ne[0], n_out = u->w->ne[1];
    ggl_tensor *m = plus(u, times(u, u->mean, u->p->beta1), u->grad),
               *x = plus(u, u->grad, times(u, m, u->p->beta1));
    ggl_graph_assign(u->g, u->mean, m);
    x = n_out > n_in ? turned(u, newton_schulz(u, turned(u, x))) : newton_schulz(u, x);
    go(u, times(u, x, 0.2 * sqrt((double)(n_in > n_out ? n_in : n_out))));
}

bool llm_train_steps_whole(const llm_train_weight *w, const llm_train_params *p) {
    return p->optimizer == LLM_TRAIN_MUON && w->n_dims == 2 &&
           strstr(w->name, LLM_TRAIN_LAYER) != NULL;
}

static void step_piece(update u) {
    const llm_train_weight *w = u.w;
    u.x = variable(&u, w->master);
    u.mean = variable(&u, w->mean);
    u.grad = ggl_binary(u.g, GGL_OP_MUL, variable(&u, w->grad), u.in[STEP_SHORTEN]);
    if (u.n == 0) {
        muon(&u);
    } else if (u.p->optimizer == LLM_TRAIN_SGD) {
        sgd(&u);
    } else {
        u.square = variable(&u, w->square);
        adamw(&u);
    }
}

/* Returns the most elements of a piece: what a piece computes stays in the core's cache until its last node, and takes little memory;
 * and there are not too many nodes. */
static int64_t piece_size(const llm_train_weight *w, int n) {
    enum { IN_CACHE = 1 << 17, MOST_PIECES = 1024 };
    int64_t all = 0;
    for (int k = 0; k < n; k++)
        all += llm_train_weight_count(&w[k]);
    return all / MOST_PIECES > IN_CACHE ? all / MOST_PIECES : IN_CACHE;
}

static void step_one(update u, int64_t most) {
    const int64_t n = llm_train_weight_count(u.w);
    if (llm_train_steps_whole(u.w, u.p)) {
        step_piece(u);
        return;
    }
    for (; u.first < n; u.first += most) {
        u.n = n - u.first < most ? n - u.first : most;
        step_piece(u);
    }
}

ggl_status llm_train_optimizer(train_plan *p, const llm_train_weight *w, int n,
                               const llm_train_params *of, ggl_error *err) {
    ggl_graph *g = p->g = ggl_graph_new(NULL);
    ggl_tensor *in[STEP_INPUTS];
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a graph");
    for (int k = 0; k < STEP_INPUTS; k++)
        in[k] = ggl_graph_input(g, llm_train_step_input[k], GGL_F32, 0, NULL, false);
    const int64_t most = piece_size(w, n);
    for (int k = 0; k < n; k++)
        step_one((update){.g = g, .w = &w[k], .p = of, .in = in}, most);
    ggl_tensor *by = in[0]; /* a graph needs an output, and all inputs a reader */
    for (int k = 1; k < STEP_INPUTS; k++)
        by = ggl_binary(g, GGL_OP_MUL, by, in[k]);
    ggl_graph_output(g, "by", by);
    llm_train_params whole =
        *of; /* half of a step would leave other weights than any whole number of steps */
    whole.cancelled = NULL;
    return llm_train_plan(p, &whole, 1, err);
}
