/* A backend that checks another one: it runs everything on it, and in some runs checks a node or two.
 * The operands and results of such a node get places where they can be read, and the node is computed
 * again, alone, on a trusted backend.
 *
 *   shadow.c  the backend; which runs and which nodes
 *   probe.c   a run in which operands and results of nodes stay where they can be read
 *   again.c   a node by itself, on the trusted backend
 *   report.c  compares, and reports differences */
#ifndef BACKENDS_SHADOW_H
#define BACKENDS_SHADOW_H

#include "../common/wrap.h"
#include "ggl/internal/backends.h"

enum { SHADOW_MAX_NODES = 16 };

typedef struct drift { /* of an operator, or a composite */
    char name[32];
    int64_t n; /* results compared */
    double largest, bound;
} drift;

typedef struct shadow {
    wrap w;
    ggl_backend *trusted; /* borrowed */
    ggl_shadow_params params;
    uint64_t random;
    ggl_buffer *arena; /* of runs that are looked at */
    size_t arena_size;
    drift *drift;
    size_t n_drifts, cap_drifts;
    ggl_shadow_result result;
} shadow;

typedef struct shadow_plan {
    ggl_plan base;
    ggl_plan *inner;
    ggl_segment s; /* its arrays are the plan's own */
    ggl_tensor **candidate;
    int n_candidates, n_regions;
} shadow_plan;

typedef struct kept { /* a part of what a slot keeps, in host memory */
    const ggl_store *store;
    int64_t slot, first; /* rows: the part begins with this position */
    size_t at, size;     /* bytes, from the store's first on */
    void *data;
} kept;

/* One run that is looked at. */
typedef struct probe {
    shadow *b;
    const shadow_plan *p;
    int64_t n; /* of the batch */
    ggl_tensor *node[SHADOW_MAX_NODES];
    int n_nodes;
    ggl_loc *loc; /* the segment's, and after the arena the places of what is looked at */
    size_t end;   /* of the arena with these */
    ggl_plan *plan;
    ggl_buffer **region;
    kept *kept;
    size_t n_kept, cap_kept;
    bool is_blind; /* what is looked at could not be fetched, and why */
    ggl_error why;
} probe;

/* Bytes of a value in a run of n. */
size_t ggl_shadow_size(const ggl_tensor *t, int64_t n);
/* Calls f for each store that the node, or its body, reads or writes; until one fails. */
ggl_status ggl_shadow_each_store(const ggl_tensor *node, void *ctx,
                                 ggl_status (*f)(void *ctx, const ggl_store *s, ggl_error *err),
                                 ggl_error *err);

/* Places, plan and memory for the nodes in it. On failure, as after ggl_probe_fini, nothing is held. */
ggl_status ggl_probe_init(probe *r, ggl_buffer *const *region, ggl_error *err);
void ggl_probe_fini(probe *r);
ggl_status ggl_probe_run(probe *r, ggl_error *err);
/* After the run: a value that a node of it reads or writes. */
ggl_status ggl_probe_read(const probe *r, const ggl_tensor *t, void *to, ggl_error *err);

/* The node once more, from what it read in that run; to: ggl_shadow_size bytes. */
ggl_status ggl_shadow_again(const probe *r, ggl_tensor *node, void *to, ggl_error *err);

/* Reads the node's result, computes it again, compares. */
void ggl_shadow_compare(const probe *r, ggl_tensor *node);
/* Counts nodes that could not be checked. */
void ggl_shadow_skip(shadow *b, int n_nodes, const ggl_error *why);

#endif
