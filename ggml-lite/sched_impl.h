/* The scheduler's own data; sched_build.c fills it, sched.c allocates and runs, sched_slots.c and
 * sched_print.c read it.
 *
 * The nodes of a graph fall into two phases. The trunk is what some later token may see: everything
 * that a store depends on. The tail is the rest, which only the outputs need: it runs for the rows
 * that are asked for, after the trunk, on gathered rows of what it reads from the trunk and of the
 * inputs. Each phase is cut into segments of one backend each. */
#ifndef GGL_SCHED_IMPL_H
#define GGL_SCHED_IMPL_H

#include "ggl/sched.h"
#include "graph_impl.h"

enum { TRUNK, TAIL, N_PHASES };

/* Before a segment runs: a value of another segment, or an input, comes to this backend (and
 * phase). */
typedef struct move {
    const ggl_tensor *t;
    int from_backend; /* -1: from the host, an input */
    size_t from, to;  /* offsets in the backends' io regions (from: in the host's inputs) */
    bool gather;      /* only the rows that outputs are wanted for */
    size_t row;       /* bytes of one of the batch; of all if it is not batched */
    bool batched;
} move;

typedef struct segment {
    int backend, phase;
    node_list nodes;
    move *move;
    size_t n_moves, cap_moves;
    ggl_plan *plan[2]; /* for one of the batch, and for as many as there may be */
    int64_t n_max[2];
} segment;

typedef struct device {
    ggl_backend *b;
    ggl_buffer **region;
    int n_regions;
    ggl_loc *loc[N_PHASES]; /* by tensor id */
    size_t *store_loc;      /* by store id; SIZE_MAX: not here */
    size_t io_size, stores_size, arena_size, copied_size;
    size_t mapped_size, rows_size, states_size; /* for the memory table */
    int copied_region;                          /* of weights that cannot be imported; 0: none */
    node_list consts, copied;                   /* to upload, once */
} device;

typedef struct output {
    const ggl_tensor *t;
    int backend, phase;
    size_t from, row;
    float *host; /* [n_rows][count] */
} output;

struct ggl_sched {
    ggl_graph *g;
    ggl_sched_params params;
    int64_t n_batch, n_rows;
    device *dev;
    int n_dev;
    int *backend;   /* by tensor id: where a node runs */
    bool *in_trunk; /* by tensor id */
    segment *seg;
    size_t n_segs, cap_segs;
    output *out;
    char *input;      /* host memory for all inputs */
    size_t *input_at; /* by index of input */
    size_t input_size;
    int64_t *input_n; /* how many of the batch are set */
    char *staging;    /* for moves between backends */
    size_t staging_size;
    bool allocated;
};

ggl_status sched_build(ggl_sched *s, ggl_error *err);

#endif
