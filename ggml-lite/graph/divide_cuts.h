/* Which values of a graph are computed in parts, and where these begin: for divide.c. */
#ifndef GGL_DIVIDE_CUTS_H
#define GGL_DIVIDE_CUTS_H

#include "ggl/internal/graph.h"
#include "ggl/internal/op_args.h"
#include "graph_impl.h"

/* A value in parts, by the id of its tensor. Parts are elements of it that lie together, or they are as large as it is, and each has
 * only the columns of some experts, and NaN in the others. */
typedef struct cut {
    int64_t *
        first; /* [n_parts + 1]: where each part begins, along dim, or its first expert; NULL: it is whole */
    int dim;                   /* the last one; of a product with more dimensions, 0; CUT_EXPERTS */
    const ggl_tensor *experts; /* the index of the expert of each column */
    int heads; /* of a product from which a cache or queries are made: the heads of the cache; else 0 */
    int seen;          /* the walk that has visited it last (find_heads) */
    bool stays_whole;  /* of a cache: its readers need all heads at once */
    ggl_tensor **part; /* [n_parts]; NULL, or an element: it is not made, or has no elements */
    ggl_tensor *
        *own_index; /* [n_parts], of an index: its numbers among a part's experts; NULL: not made */
    bool is_joined; /* of all parts, the tensor itself is made */
} cut;

enum { CUT_EXPERTS = -2 };

typedef struct cuts {
    ggl_graph *g;
    cut *at; /* [n_ids], by id of the graph's own tensors, bodies included */
    int n_ids;
    const double *share;
    int n_parts;
    size_t least; /* bytes of a weight */
    int64_t unit; /* rows */
    int n_walks;  /* see cut.seen */
    bool again;   /* a cache has to stay whole, so others are to be found anew */
} cuts;

/* Finds the cuts; at[] is all zeros. False: out of memory. */
bool ggl_cuts_find(cuts *c);

/* Returns where the parts of t begin if it is cut along its last dimension; else NULL. */
static inline const int64_t *ggl_cut_of(const cuts *c, const ggl_tensor *t) {
    return t && t->id < c->n_ids && c->at[t->id].dim == t->n_dims - 1 ? c->at[t->id].first : NULL;
}

/* Returns the index by which the columns of t are divided among experts; NULL: they are not. */
static inline const ggl_tensor *ggl_experts_of(const cuts *c, const ggl_tensor *t) {
    return t && t->id < c->n_ids && c->at[t->id].first ? c->at[t->id].experts : NULL;
}

/* True if a part of t, which is cut, reads only a part of its k-th source, if that has parts. */
bool ggl_cut_reads_part(const ggl_tensor *t, int k);

/* Returns the weight or constant of which t has consecutive elements along its last dimension, *first and those after it; NULL: it is not one. */
const ggl_tensor *ggl_cut_leaf(const ggl_tensor *t, int64_t *first);

#endif
