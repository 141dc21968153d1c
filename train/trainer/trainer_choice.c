/* Which weights of a model learn. */
#include <string.h>

#include "compile/compile.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "trainer_impl.h"

bool llm_train_is_of_numbers(ggl_type of) {
    const ggl_type_info *type = ggl_type_get(of);
    return type && ggl_type_has_products((ggl_type)of);
}

static bool has_numbers(const ggl_tensor *w) {
    return w->op == GGL_OP_WEIGHT && w->name && w->data && w->n_dims < GGL_MAX_DIMS &&
           llm_train_is_of_numbers(w->type);
}

static bool is_of_adapter(const char *name) {
    const char *end = strrchr(name, '.');
    return end && (strcmp(end, ".lora_a") == 0 || strcmp(end, ".lora_b") == 0 ||
                   strcmp(end, ".lora_magnitude") == 0);
}

static bool is_asked(const llm_train_params *p, const char *name) {
    if (p->only_adapters && !is_of_adapter(name))
        return false;
    return p->n_learn == 0 ||
           llm_arch_match_first(p->learn, p->n_learn, (ggl_str){name, strlen(name)}, NULL) <
               p->n_learn;
}

/* Fails if a pattern fits none of the n weights. */
static ggl_status check_patterns(const llm_train_params *p, ggl_tensor *const *weight, int n,
                                 ggl_error *err) {
    for (size_t i = 0; i < p->n_learn; i++) {
        bool fits = false;
        for (int k = 0; k < n && !fits; k++)
            fits = llm_arch_match_first(&p->learn[i], 1,
                                        (ggl_str){weight[k]->name, strlen(weight[k]->name)},
                                        NULL) == 0;
        if (!fits)
            return ggl_fail(err, GGL_NOT_FOUND, "'%s' fits the name of no weight that can learn",
                            p->learn[i]);
    }
    return n > 0 ? GGL_OK
                 : ggl_fail(err, GGL_UNSUPPORTED,
                            "no weight learns: the loss depends on none that can");
}

/* The weights that may learn, and the graphs that they are nodes of. */
typedef struct choice {
    ggl_graph **g;
    size_t n_graphs, cap_graphs;
    ggl_tensor **weight;
    size_t n, cap;
    ggl_graph *own; /* of layers that guess: that of the model itself, finished */
} choice;

/* True if the model itself reads the weight. */
static bool is_read(const ggl_graph *own, const ggl_tensor *w) {
    bool any = false;
    for (int i = 0; own && i < ggl_graph_n_nodes(own) && !any; i++) {
        const ggl_tensor *x = ggl_graph_node(own, i);
        any = x->op == GGL_OP_WEIGHT && x->needed && x->data == w->data;
    }
    return any;
}

static bool has(const choice *c, const ggl_tensor *w) {
    bool any = false;
    for (size_t k = 0; k < c->n && !any; k++)
        any = c->weight[k]->data == w->data && strcmp(c->weight[k]->name, w->name) == 0;
    return any;
}

/* Adds the weights of the graph that have gradients, and are asked for. Sets *any if the graph has one that learns. */
static ggl_status choose_of(llm_trainer *t, ggl_graph *g, ggl_tensor *loss, choice *c, bool *any,
                            ggl_error *err) {
    const int n_nodes = ggl_graph_n_nodes(g);
    ggl_tensor **weight = ggl_calloc((size_t)n_nodes, sizeof(ggl_tensor *)),
               **grad = ggl_calloc((size_t)n_nodes, sizeof(ggl_tensor *));
    ggl_status st = GGL_OK;
    int n = 0;
    if (!weight || !grad || !ggl_grow(&c->weight, &c->cap, c->n + (size_t)n_nodes, sizeof *weight))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    for (int i = 0; i < n_nodes && st == GGL_OK; i++) {
        ggl_tensor *w = ggl_graph_node(g, i);
        if (has_numbers(w) && is_asked(&t->p, w->name) && !is_read(c->own, w))
            weight[n++] = w;
    }
    if (st == GGL_OK && n > 0) {
        ggl_graph_grad(g, loss, weight, n, NULL, grad);
        st = ggl_graph_error(g, err);
    }
    for (int k = 0; k < n && st == GGL_OK; k++) {
        *any |= grad[k] != NULL;
        if (grad[k] && !has(c, weight[k]))
            c->weight[c->n++] = weight[k];
    }
    ggl_free(weight);
    ggl_free(grad);
    return st;
}

/* Those of a layer's graph or, of_stage, of that of a stage of the reader. */
static ggl_status choose_some(llm_trainer *t, int k, bool of_stage, choice *c, ggl_error *err) {
    ggl_tensor *loss = NULL;
    bool any = false;
    if (!ggl_grow(&c->g, &c->cap_graphs, c->n_graphs + 1, sizeof(ggl_graph *)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    ggl_graph **g = &c->g[c->n_graphs++];
    *g = NULL;
    ggl_status st =
        of_stage ? llm_reader_build(t, k, g, &loss, err) : llm_trainer_build(t, k, g, &loss, err);
    if (st == GGL_OK)
        st = choose_of(t, *g, loss, c, &any, err);
    if (of_stage)
        t->reader.stage[k].learns = any;
    return st;
}

ggl_status llm_trainer_choose(llm_trainer *t, ggl_error *err) {
    choice c = {0};
    ggl_graph *first = NULL; /* tells what is read of the other model */
    ggl_status st = t->p.other ? llm_trainer_build_model(t, 0, false, &first, err) : GGL_OK;
    ggl_graph_free(first);
    if (st == GGL_OK && t->p.guess)
        st = llm_trainer_build_model(t, 0, true, &c.own, err);
    if (st == GGL_OK && c.own)
        st = ggl_graph_finish(c.own, err);
    t->guesses.n_layers = 1;
    for (int k = 0; k < t->guesses.n_layers && st == GGL_OK; k++) /* the first one tells how many */
        st = choose_some(t, k, false, &c, err);
    for (int k = 0; k < t->reader.n_sources && st == GGL_OK; k++)
        if (t->reader.is.of_text || !t->reader.of[k].is_input)
            st = choose_some(t, k, true, &c, err);
    if (st == GGL_OK && t->p.guess)
        st = llm_trainer_check_tokens(t, err);
    if (st == GGL_OK)
        st = check_patterns(&t->p, c.weight, (int)c.n, err);
    if (st == GGL_OK)
        st = llm_train_weights_init(&t->weights, c.weight, (int)c.n, &t->p, err);
    if (st == GGL_OK && t->p.bf16)
        st = llm_train_copies_init(&t->weights, c.g, c.n_graphs, err);
    for (size_t k = 0; k < c.n_graphs; k++)
        ggl_graph_free(c.g[k]);
    ggl_graph_free(c.own);
    ggl_free(c.g);
    ggl_free(c.weight);
    return st;
}
