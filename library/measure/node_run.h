/* Runs a graph node by node, each as a segment of its own, so that every value can be read and
 * replaced between runs. This is slow but needed to look inside: the scheduler keeps only what
 * outputs and other segments read.
 *
 *     node_map m;      places of values; the same for all backends
 *     node_device d;   memory of one backend
 *     if (llm_node_map_init(&m, graph, n, &err) == GGL_OK &&
 *         llm_node_device_init(&d, &m, backend, &err) == GGL_OK)
 *         for (int i = 0; i < m.n_nodes; i++)
 *             .. node_device_put (inputs), llm_node_device_run(&d, m.node[i], &err),
 *                node_device_get .. */
#ifndef LIBRARY_NODE_RUN_H
#define LIBRARY_NODE_RUN_H

#include "ggl/backend.h"

typedef struct node_map {
    const ggl_graph *graph; /* finished and folded; borrowed */
    int64_t n;              /* tokens per run; only slot 0 is used */
    /* computed nodes, in order; views of weights and gathered matrices belong to their readers */
    ggl_tensor **node;
    int n_nodes;
    const ggl_tensor **weight, **constant;
    size_t n_weights, cap_weights, n_constants, cap_constants;
    ggl_loc *loc;       /* by tensor id */
    ggl_loc *store_loc; /* by store id */
    int32_t *page;      /* values of the input "page": slots have their own pages; NULL: none */
    size_t io_size, stores_size;
} node_map;

typedef struct node_device {
    const node_map *m;
    ggl_backend *b;
    ggl_buffer **region;
    int n_regions;
    size_t arena_size;
    ggl_tensor **segment; /* scratch: the nodes of the current segment */
    ggl_loc *repacked;    /* by tensor id, of weights; NULL if none is repacked */
} node_device;

ggl_status llm_node_map_init(node_map *m, const ggl_graph *g, int64_t n, ggl_error *err);
void llm_node_map_fini(node_map *m);
/* Allocates memory, and uploads constants and the weights that cannot be used in place. */
ggl_status llm_node_device_init(node_device *d, const node_map *m, ggl_backend *b, ggl_error *err);
/* Repacks the weights that the backend wants repacked; only products may read them. */
ggl_status llm_node_device_repack(node_device *d, ggl_error *err);
void llm_node_device_fini(node_device *d);

/* Returns the elements of a value in one run; values are f32 or i32. */
size_t llm_node_count(const node_map *m, const ggl_tensor *t);
/* True if get and put can access the value: an input, or a node that is not private to its
 * reader. */
bool llm_node_is_placed(const node_map *m, const ggl_tensor *t);
ggl_status llm_node_device_put(node_device *d, const ggl_tensor *t, const void *data,
                               ggl_error *err);
ggl_status llm_node_device_get(node_device *d, const ggl_tensor *t, void *data, ggl_error *err);
/* Computes one node from the current values of its sources. */
ggl_status llm_node_device_run(node_device *d, ggl_tensor *t, ggl_error *err);
/* Compiles that run, for d->b->v->run with d->region; free it with the backend's plan_free. */
ggl_status llm_node_device_compile(node_device *d, ggl_tensor *t, ggl_plan **plan, ggl_error *err);
/* Read a store as bytes; clear it. */
ggl_status llm_node_device_get_store(node_device *d, const ggl_store *s, void *data,
                                     ggl_error *err);
ggl_status llm_node_device_clear(node_device *d, const ggl_store *s, ggl_error *err);

#endif
