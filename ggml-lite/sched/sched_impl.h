/* The scheduler's own data; place.c says where nodes run, build.c cuts segments and
 * places values, sched.c allocates and runs, slots.c and
 * print.c read it. repack.c says which weights are repacked, and repacks them,
 * cache.c keeps the result in a file.
 *
 * The nodes of a graph fall into two phases. The trunk is what some later token may see: everything
 * that a store depends on. The tail is the rest, which only the outputs need: it runs for the rows
 * that are asked for, after the trunk, on gathered rows of what it reads from the trunk and of the
 * inputs. Each phase is cut into segments of one backend each. */
#ifndef GGL_SCHED_IMPL_H
#define GGL_SCHED_IMPL_H

#include "base/os_file.h"
#include "ggl/sched.h"
#include "graph/graph_impl.h"

enum { TRUNK, TAIL, N_PHASES };

/* Batches under way at once, each in a lane of its own: inputs, and values that cross segments. */
enum { MAX_LANES = 4 };

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

/* Host memory that a device uses in place, or cannot. */
typedef struct import {
    const char *data;
    size_t size;
    int region; /* -1: it cannot */
} import;

/* Weights that a device cannot use where they lie: buffers of at most ggl_backend.max_buffer. */
typedef struct copies {
    int region;
    size_t size;
} copies;

typedef struct device {
    ggl_backend *b;
    ggl_buffer **region;
    int n_regions;
    ggl_loc *loc[N_PHASES];    /* by tensor id */
    size_t *store_loc;         /* by store id; SIZE_MAX: not here */
    ggl_buffer *io[MAX_LANES]; /* one of them is region[GGL_REGION_IO] of a run */
    size_t io_size, stores_size, arena_size, copied_size;
    size_t mapped_size, rows_size, states_size; /* for the memory table */
    import *imports;
    size_t n_imports, cap_imports;
    copies *copies;
    size_t n_copies, cap_copies;
    node_list consts, copied; /* to upload, once */
    ggl_loc *repacked;    /* by tensor id, GGL_REGION_REPACKED: repacked weights, for products */
    bool *read_otherwise; /* by tensor id: weights that more than their repacked copy is read of */
    node_list repack;     /* what to lay out, in order of its place */
    size_t repacked_size, dropped_size;
} device;

/* A node that runs elsewhere than it was wished, as a backend refused it. */
typedef struct fallback {
    const ggl_tensor *node, *refused; /* what was refused may be within the node's body */
    const char *why;
    int wished, used;
} fallback;

typedef struct flight { /* a batch under way */
    int64_t n;
    const int32_t *row; /* of outputs wanted; NULL: all */
    int64_t n_rows;
    int lane;
    size_t next; /* segment */
} flight;

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
    segment *seg;   /* those of the trunk, then those of the tail */
    size_t n_segs, n_trunk_segs, cap_segs;
    size_t load_done, load_total; /* bytes of weights, for params.progress */
    output *out;
    fallback *fallback;
    size_t n_fallbacks, cap_fallbacks;
    int n_lanes;
    flight flight[MAX_LANES]; /* the oldest first */
    int n_flights;
    char *input;      /* host memory for all inputs, as they are set */
    char *lane_input; /* [n_lanes][input_size], as they were when the lane's batch began */
    size_t *input_at; /* by index of input */
    size_t input_size;
    int64_t *input_n; /* how many of the batch are set */
    char *staging;    /* for moves between backends */
    size_t staging_size;
    bool allocated;
    os_map cache; /* repacked weights of an earlier run; GGL_REGION_REPACKED may lie in it */
    ggl_cache_use cache_use;
    char cache_note[256];
};

ggl_status ggl_sched_build(ggl_sched *s, ggl_error *err);
/* A node for people, with the type of its weights if it has any; returns buf. */
const char *ggl_sched_node_text(const ggl_tensor *t, char *buf, size_t size);
/* Sets s->backend, and s->fallback for what runs elsewhere than wished. */
ggl_status ggl_sched_place(ggl_sched *s, ggl_error *err);
/* The host range that holds the weight; the weight by itself if there is none. */
ggl_host_range ggl_sched_host_range(const ggl_sched *s, const ggl_tensor *t, int *index);

/* Tells params.progress; GGL_CANCELLED if it says so. */
ggl_status ggl_sched_loaded(ggl_sched *s, size_t size, ggl_error *err);

/* Which weights are repacked, and where to. After segments are cut. */
ggl_status ggl_sched_repack_place(ggl_sched *s, ggl_error *err);
/* Takes the memory and lays them out, or finds them in the file. */
ggl_status ggl_sched_repack(ggl_sched *s, ggl_error *err);

/* Offset in the file of the region of each device, [n_dev]; the file's size. */
size_t ggl_sched_cache_size(const ggl_sched *s, size_t *at);
/* Maps params.cache into s->cache if it is what this run would write; else the reason is noted. */
void ggl_sched_cache_open(ggl_sched *s);
void ggl_sched_cache_write(ggl_sched *s);

#endif
