/* What the layers of a model cost, of a published shape or a file, and what passes between ranks. */
#ifndef TOOLS_BENCH_CLUSTER_MODEL_H
#define TOOLS_BENCH_CLUSTER_MODEL_H

#include "cluster_speed.h"
#include "costs.h"

typedef struct cluster_layer {
    cluster_cost trunk,
        tail;      /* what all tokens pass; what only those pass whose logits are wanted */
    double widest; /* most bytes of a value, with those that it is computed from */
} cluster_layer;

typedef struct cluster_model {
    char name[128];
    double n_params, size;
    ggl_type type; /* of most bytes of weights */
    int n_layers;
    cluster_layer *
        layer; /* [n_layers + 2]: what is before the first layer, the layers, what is after the last */
    struct llm_model *model; /* NULL: it is a shape */
    llm_arch *arch;          /* a shape's */
    ggl_graph *graph;
} cluster_model;

typedef struct cluster_model_params {
    const char *shape, *type; /* a published shape and the type of its weights, */
    const char *file;         /* or a file */
    int64_t n_ctx;
    ggl_type type_k, type_v;
} cluster_model_params;

/* cluster_model_fini frees it also after an error. */
GGL_NODISCARD ggl_status cluster_model_init(cluster_model *m, const cluster_model_params *p,
                                            ggl_error *err);
void cluster_model_fini(cluster_model *m);

/* Bytes that a rank gets from rank 0, and sends to it: for each token, and for each whose logits are wanted. */
typedef struct cluster_traffic {
    double in, out, tail_in, tail_out;
} cluster_traffic;
/* rank_of[n_layers + 2]: as cluster_model.layer; out[n_ranks]. Values of rank 0 do not travel to it. GGL_NOMEM. */
GGL_NODISCARD ggl_status cluster_model_traffic(const cluster_model *m, const int *rank_of,
                                               int n_ranks, cluster_traffic *out, ggl_error *err);

#endif
