/* Copies of matrices in bf16, which products read: half of the memory to read, and products that processors with AVX-512 BF16 compute twice as fast.
 * What learns, and what is read by anything but a product, such as the rows of an embedding, stays f32. */
#include "compile/compile.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "train_impl.h"

/* Calls f for each node of the list, and of all bodies. */
typedef void node_fn(void *ctx, ggl_tensor *t);
static void walk(ggl_tensor *const *node, int n, node_fn *f, void *ctx) {
    for (int i = 0; i < n; i++) {
        f(ctx, node[i]);
        if (node[i]->body)
            walk(node[i]->body->node, node[i]->body->n_node, f, ctx);
    }
}

static void walk_graph(ggl_graph *g, node_fn *f, void *ctx) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        walk(&t, 1, f, ctx);
    }
}

/* Returns where the node, if it is a product, or picks matrices for one, reads a weight; NULL: it does not. */
static ggl_tensor **matrix_of(ggl_tensor *t) {
    if (t->op != GGL_OP_LINEAR)
        return NULL;
    ggl_tensor **at = &t->src[LINEAR_W];
    if ((*at)->gather)
        at = &(*at)->src[PICK_T];
    return (*at)->op == GGL_OP_WEIGHT && (*at)->name ? at : NULL;
}

/* --- making ----------------------------------------------------------------------------------- */

typedef struct making {
    train_weights *list;
    bool no_memory;
} making;

static void make(void *ctx, ggl_tensor *t) {
    making *m = ctx;
    ggl_tensor **at = matrix_of(t);
    llm_train_weight *w = at ? llm_train_weights_find(m->list, (*at)->name) : NULL;
    if (!w || w->copy || (*at)->data != w->origin || w->ne[0] < GGL_GRAD_BF16_SIDE ||
        w->ne[1] < GGL_GRAD_BF16_SIDE)
        return;
    w->copy = ggl_calloc((size_t)llm_train_weight_count(w), sizeof *w->copy);
    m->no_memory |= !w->copy;
}

ggl_status llm_train_copies_init(train_weights *list, ggl_graph *const *g, size_t n,
                                 ggl_error *err) {
    making m = {list, false};
    for (size_t i = 0; i < n; i++)
        walk_graph(g[i], make, &m);
    llm_train_weights_round(list);
    return m.no_memory ? ggl_fail(err, GGL_NOMEM, "out of memory for copies in bf16") : GGL_OK;
}

/* --- graphs ----------------------------------------------------------------------------------- */

typedef struct use {
    ggl_tensor *const *weight, *const *copy;
    int n;
} use;

static void read_copy(void *ctx, ggl_tensor *t) {
    const use *u = ctx;
    ggl_tensor **at = matrix_of(t);
    for (int k = 0; k < u->n && at; k++)
        if (*at == u->weight[k]) {
            *at = u->copy[k] ? u->copy[k] : *at;
            return;
        }
}

void llm_train_copies_use(const train_weights *list, ggl_graph *g, ggl_tensor *const *weight, int n,
                          ggl_tensor **copy) {
    bool any = false;
    for (int k = 0; k < n; k++) {
        const llm_train_weight *w = llm_train_weights_find(list, weight[k]->name);
        if (!w->copy)
            continue;
        copy[k] = ggl_graph_variable(g, w->name, GGL_BF16, w->n_dims, w->ne, w->copy);
        any |= copy[k] != NULL;
    }
    use u = {weight, copy, n};
    if (any)
        walk_graph(g, read_copy, &u);
}
