/* What a scheduler has decided before it allocates memory: where nodes run, the segments, what moves
 * between them, and where everything lies. It does not change while batches run, except for `stale` of
 * moves.
 *
 *   choose.c    chooses the backend of each node
 *   segments.c  divides the nodes into trunk, early tail and the rest, and these into segments
 *   crossings.c places the values that cross segments
 *   moves.c     lists the values that move to segments, and the outputs
 *   regions.c   gives weights and constants places in the regions of devices
 *   stores.c    gives stores places there
 *   build.c     does all of this, and compiles the plans
 *
 * The nodes of a graph fall into two phases. The trunk is everything that a store depends on, and
 * nodes that are the same for the whole batch. The tail is the rest, which only outputs need. The
 * trunk runs for the whole batch; then the tail runs for the requested rows only, on those rows of
 * the inputs and of the trunk's values. If main rows read a stage (ggl_rows), its nodes are a trunk of their own, which other runs
 * compute. Each phase is cut into segments of one backend each. What the
 * output params.early needs of the tail is cut first, so that a run may end after it. */
#ifndef GGL_SCHEDULE_H
#define GGL_SCHEDULE_H

#include "device.h"
#include "ggl/internal/sched.h"

enum { HOST_PAGE = 4096 };

/* Bytes from .. to-1 of an input; none if the numbers are equal. */
typedef struct byte_range {
    size_t from, to;
} byte_range;

/* A copy that is made before a segment runs: brings an input, or a value of another segment, to the
 * segment's backend and phase. */
typedef struct move {
    const ggl_tensor *t;
    int from_backend; /* -1: t is an input, in host memory */
    int image;        /* for a value of another device: the device whose host image holds it */
    /* Offsets. `to` and, for a move within a device, `from` are in the io region; `from` of an input is
     * in inputs.now, and that of another device's value in the lane's host memory. */
    size_t from, to;
    bool gather; /* only the rows for which outputs are requested are wanted */
    bool picks;  /* these rows are not contiguous yet, so the move collects them */
    size_t at;   /* offset in the io region of the device that computes it */
    size_t row;  /* bytes for one element of the batch; if not batched, of the whole value */
    bool batched;
    byte_range
        stale[MAX_LANES]; /* of an input that is not batched: what the device must still get */
} move;

/* A value that other devices need. After the segment that computes it, it is brought to an image,
 * where the other devices' moves find it: so each device is called for its own segments only, whatever
 * the others are doing. The image is that of the reader if this computes in host memory, which then
 * need not move it again; else that of the device that computes it. */
typedef struct departing {
    const ggl_tensor *t;
    int image, phase; /* the device, and the phase of the value's place on it */
    bool is_copied;   /* false: all readers copy it themselves, from the device */
    bool gather;      /* only the rows for which outputs are requested */
    bool batched;     /* see move */
    size_t row;       /* see move */
    size_t from, to;  /* offsets in the io region, and in the lane's host memory */
    size_t reader;    /* the first segment before which it is moved on */
} departing;

typedef struct segment {
    int backend, phase;
    node_list nodes;
    move *move;
    size_t n_moves, cap_moves;
    departing *departing;
    size_t n_departing, cap_departing;
    node_list watched; /* nodes of it whose operands are shown (ggl_sched_params.watch) */
    size_t read_until; /* the last segment that reads a store which this one writes; or this one */
    size_t again;      /* the next segment of this backend; n_segs if this is the last one */
    ggl_plan *plan[2]; /* for a batch of 1, and for up to n_max[1]; [1] is NULL if that is 1, too */
    int64_t n_max[2];  /* the largest batch of each plan */
} segment;

/* A node that runs on another backend than the wished one, which refused it. */
typedef struct fallback {
    const ggl_tensor *node, *refused; /* refused: the node itself, or a node of its body */
    const char *why;
    int wished, used; /* backends */
} fallback;

typedef struct output {
    const ggl_tensor *t;
    int backend, phase;
    bool is_whole;    /* all elements of the batch are wanted (ggl_sched_params.whole) */
    size_t from, row; /* offset in the io region; bytes of one row */
    size_t
        to; /* offset in the lane's host memory, [n_rows][count] f32; [n_batch][count] if whole */
    size_t computed_by; /* index of the segment */
} output;

typedef struct schedule {
    ggl_graph *g;
    ggl_sched_params params;
    int64_t n_batch, n_rows; /* most elements of a batch, most rows of outputs, in one run */
    int n_lanes;             /* most batches in flight */
    device *dev;
    int n_dev;
    /* by tensor id: */
    int *backend;            /* where a node runs */
    bool *in_trunk;          /* the node runs for the whole batch */
    bool *is_early;          /* a node of the tail that params.early needs */
    const ggl_tensor *whole; /* the output params.whole; NULL: none */
    bool *watched;           /* a node whose operands are shown; NULL if no node's are */
    int *shares;             /* by store id: the store whose memory it uses; -1: its own */
    bool has_stage;          /* nodes of a stage's rows are computed by runs of their own */
    fallback *fallback;
    size_t n_fallbacks, cap_fallbacks;
    segment *
        seg; /* those of the stage, those of the trunk, then those of the tail, the early ones first */
    size_t n_segs, cap_segs;
    size_t
        n_stage_segs; /* the first ones, of rows that main rows read; 0: there is no stage, or nothing else */
    size_t n_trunk_segs; /* those and the trunk's */
    size_t n_early_segs; /* and the early ones */
    output *out;
    node_list reads; /* mapped weights to read ahead, in the order of their readers */
    node_list stacks,
        stack_index;   /* mapped stacks of matrices; what chooses theirs (NULL: nothing) */
    size_t *input_at;  /* by index of input: its offset among all inputs */
    size_t input_size; /* bytes of all inputs */
    size_t host_size;  /* of a lane's images and outputs */
    size_t shown_size, n_operands; /* most bytes, and number, of the operands of a watched node */
} schedule;

static inline ggl_status ggl_sched_no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the schedule");
}

/* Appends t; false: out of memory. */
static inline bool ggl_node_list_push(node_list *l, ggl_tensor *t) {
    if (!ggl_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at))
        return false;
    l->at[l->n++] = t;
    return true;
}

/* Returns the rows of a weight, counted over all of its matrices. */
static inline int64_t ggl_sched_rows_of(const ggl_tensor *weight) {
    return ggl_extents(weight->ne, 1, GGL_MAX_DIMS, 1);
}

/* Returns the phase that computes the node t. */
static inline int ggl_sched_phase(const schedule *s, const ggl_tensor *t) {
    return s->in_trunk[t->id] ? TRUNK : TAIL;
}

/* A hint that ends messages about a KV cache that does not fit. */
extern const char ggl_sched_hint_smaller[];

/* --- build.c: everything; choose.c, segments.c: nodes --- */

/* Makes the whole schedule of s->g for s->params: places nodes, cuts segments, sizes all memory,
 * compiles the plans. ggl_schedule_fini is called in any case. */
ggl_status ggl_schedule_build(schedule *s, ggl_error *err);
/* Frees the plans, the devices' buffers and all tables, but not the backends, which are borrowed. */
void ggl_schedule_fini(schedule *s);
/* Writes a description of the node, with the type of its weight if it reads one; returns buf.
 * Example: "linear (blk.3 q, llama.arch:31) with weights of type iq2_xs" */
const char *ggl_sched_node_text(const ggl_tensor *t, char *buf, size_t size);
/* Sets s->backend for every computed node, and adds to s->fallback those that a backend refused. */
ggl_status ggl_sched_place(schedule *s, ggl_error *err);
/* Sets s->in_trunk, s->is_early, s->seg and the numbers of segments, from s->backend and s->watched.
 * GGL_NOT_FOUND: there is no output params.early. */
ggl_status ggl_sched_cut(schedule *s, ggl_error *err);

/* --- regions.c: weights and constants --- */

/* Returns the number of the range that holds the weight t; n: none does. */
int ggl_sched_range_of(const ggl_host_range *range, int n, const ggl_tensor *t);
/* Returns the range of params.host that holds the weight t, and sets *index to its number;
 * without such a range, returns the weight's own memory and sets *index to params.n_host. */
ggl_host_range ggl_sched_host_range(const schedule *s, const ggl_tensor *t, int *index);
/* Adds a region with the buffer b (NULL: allocated later) to the device; false: out of memory. */
bool ggl_sched_add_region(device *d, ggl_buffer *b);
/* Sets *loc to a place for `size` bytes, a multiple of 64: after what the last of the pieces holds,
 * or at the start of a new piece where that one would exceed the device's max_buffer. `first` is the
 * region of the first piece; -1: it gets a new one, as all others do. False: out of memory. */
bool ggl_sched_place_in(device *d, pieces *p, int first, size_t size, ggl_loc *loc);
/* Give the weight or the constant a place on the device, if it has none. */
ggl_status ggl_sched_place_weight(schedule *s, device *d, ggl_tensor *t, ggl_error *err);
ggl_status ggl_sched_place_const(device *d, ggl_tensor *t, ggl_error *err);

/* --- stores.c, shared_stores.c: stores --- */

/* Gives the store a place on the device, if it has none; it holds after ggl_sched_place_pages. */
ggl_status ggl_sched_place_store(schedule *s, device *d, const ggl_store *store, ggl_error *err);
/* Puts the pages of stores side by side; all stores of the device are known. */
ggl_status ggl_sched_place_pages(const schedule *s, device *d, ggl_error *err);
/* shared_stores.c: sets s->shares; the segments are known. */
ggl_status ggl_sched_share_stores(schedule *s, ggl_error *err);
/* True if no run reads what another one has stored in x. */
bool ggl_sched_is_passing(const schedule *s, const ggl_store *x);

/* --- crossings.c, moves.c: what crosses segments --- */

/* Notes that segment i needs the device's copy of the value t for the phase. */
void ggl_sched_use_value(device *d, int phase, const ggl_tensor *t, size_t i);
/* Sets loc of all values in use, io.size, and where the images are in the lane's host memory. */
ggl_status ggl_sched_place_values(schedule *s, ggl_error *err);
/* Makes x, an input or the value of another segment, available to segment i: where the segment's
 * device has it, or else by a move, one for each backend and phase. own[], by tensor id, is the index of
 * the segment that computes a node, plus 1. */
ggl_status ggl_sched_provide_value(schedule *s, size_t i, const ggl_tensor *x, const size_t *own,
                                   ggl_error *err);
/* Lists the outputs in s->out. Their values are kept until all segments have run. */
ggl_status ggl_sched_list_outputs(schedule *s, const size_t *own, ggl_error *err);
/* Sets the offsets of moves, of what departs, and of outputs, once all values are placed. */
ggl_status ggl_sched_set_offsets(schedule *s, const size_t *own, ggl_error *err);
/* Fails because t, for a batch of n, does not fit into memory. */
ggl_status ggl_sched_too_large(const ggl_tensor *t, int64_t n, ggl_error *err);

#endif
