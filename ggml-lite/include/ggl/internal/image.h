/* A finished graph as bytes, for another process of the same build: all of its nodes, constants and stores, but not the
 * elements of weights.
 *
 *     ggl_bytes b = {0};
 *     st = ggl_graph_image(g, &b, &err);
 *     ..                                                   // in the other process
 *     st = ggl_graph_of_image(&copy, at, n, &err);         // tensors have the ids that they have in g
 *
 * Threads: as ggl/graph.h says. */
#ifndef GGL_IMAGE_H
#define GGL_IMAGE_H

#include "ggl/graph.h"
#include "ggl/internal/bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the image of g, whose constants are settled (ggl_sched_new does that). GGL_NOMEM. */
GGL_NODISCARD ggl_status ggl_graph_image(const ggl_graph *g, ggl_bytes *out, ggl_error *err);
/* Appends the image of a graph with the node t alone, whose values are inputs where they are computed: enough to ask a
 * backend whether it refuses t, which is its only output. GGL_NOMEM. */
GGL_NODISCARD ggl_status ggl_node_image(ggl_tensor *t, ggl_bytes *out, ggl_error *err);
/* Makes the graph of an image. The data of weights is NULL, and dimensions have no names; all else is like the graph from which
 * it was made. GGL_FORMAT: the bytes are damaged; what is read is checked as the builder checks its arguments. GGL_NOMEM. */
GGL_NODISCARD ggl_status ggl_graph_of_image(ggl_graph **out, const void *image, size_t size,
                                            ggl_error *err);
/* Returns the tensors of a graph by id, in an array of ggl_graph_n_ids that the caller frees; NULL for ids that nothing has.
 * NULL: out of memory. */
ggl_tensor **ggl_graph_by_id(const ggl_graph *g);

/* One weight by itself, without its elements: its name, type and shape. */
void ggl_weight_image(const ggl_tensor *t, ggl_bytes *out);
/* Reads one into *t, with its name in `name`, cut off at `size`. False: damaged. */
bool ggl_weight_of_image(ggl_tensor *t, char *name, size_t size, ggl_reader *r);

#ifdef __cplusplus
}
#endif
#endif
