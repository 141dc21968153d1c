/* The scheduler's private data, shared by its files:
 *
 *   place.c   chooses the backend of each node
 *   segments.c  divides the nodes into trunk, early tail and the rest, and these into segments
 *   values.c  places the values that cross segments
 *   moves.c   lists the values that move to segments, and the outputs
 *   build.c   places everything else, compiles the plans
 *   repack.c  chooses the weights to repack, and repacks them
 *   cache.c   keeps repacked weights in a file
 *   memory.c  allocates buffers of devices, and host memory
 *   peers.c   lets devices reach each other's memory
 *   inputs.c  sets the inputs, and notes which bytes devices must get
 *   run.c     passes a batch through a segment: moves its values, and runs it
 *   watch.c   shows to the user what watched nodes read
 *   order.c   finds flights that must wait before they write what others still read
 *   flights.c starts batches and collects them: which thread passes which batch on, and when
 *   sched.c   creates and frees a scheduler
 *   slots.c   clears, copies, saves and restores slots
 *   print.c   prints the schedule
 *
 * The nodes of a graph fall into two phases. The trunk is everything that a store depends on, and
 * nodes that are the same for the whole batch. The tail is the rest, which only outputs need. The
 * trunk runs for the whole batch; then the tail runs for the requested rows only, on those rows of
 * the inputs and of the trunk's values. Each phase is cut into segments of one backend each. What the
 * output params.early needs of the tail is cut first, so that a run may end after it. */
#ifndef GGL_SCHED_IMPL_H
#define GGL_SCHED_IMPL_H

#include <pthread.h>

#include "base/os_file.h"
#include "ggl/internal/sched.h"
#include "graph/graph_impl.h"

enum { TRUNK, TAIL, N_PHASES };

/* Batches that may be in flight at once. Each has a lane: its own copy of the inputs, of the values that
 * cross segments, and of the outputs. */
enum { MAX_LANES = 8 };

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
     * in sched.input, and that of another device's value in the lane's host memory. */
    size_t from, to;
    bool gather; /* only the rows for which outputs are requested are wanted */
    bool picks;  /* these rows are not contiguous yet, so the move collects them */
    size_t at;   /* offset in the io region of the device that computes it */
    size_t row;  /* bytes for one element of the batch; if not batched, of the whole value */
    bool batched;
    byte_range
        stale[MAX_LANES]; /* of an input that is not batched: what the device must still get */
} move;

/* The segments during which a device must hold a value in its io region. first: computes the value, or
 * the value is moved there before it. last: reads the value, or the value is moved elsewhere before it;
 * the number of segments if it is needed until the end of the run. */
typedef struct lifetime {
    const ggl_tensor *t; /* NULL: the device does not hold the value */
    size_t first, last;
    bool in_tail; /* a trunk value that tail nodes read in place, without a move */
} lifetime;

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

/* A range of host memory that the scheduler has asked a device to use in place. */
typedef struct import {
    const char *data;
    size_t size;
    int region; /* -1: the device cannot use it in place */
} import;

/* Buffers that are filled one after another, each of at most ggl_backend.max_buffer bytes. */
typedef struct pieces {
    struct piece {
        int region;
        size_t size; /* bytes used so far */
    } * at;
    size_t n, cap;
} pieces;

typedef struct device {
    ggl_backend *b;
    ggl_buffer **region; /* by region number; NULL until allocated */
    int n_regions;
    ggl_loc *loc[N_PHASES];    /* by tensor id; region -1: the phase does not use it */
    lifetime *life[N_PHASES];  /* by tensor id; only while the schedule is built */
    ggl_loc *store_loc;        /* by store id; region -1: the store is on another device */
    ggl_buffer *io[MAX_LANES]; /* a run uses its lane's buffer as region[GGL_REGION_IO] */
    /* The lane's host memory has an image of each device's io region, for values on their way from or to
     * others. A device that computes in host memory has its io region there, in place. Others copy
     * between the two: by themselves, if they reach the lane's host memory as a buffer `host`, else
     * (NULL) by uploads and downloads. */
    ggl_buffer *host[MAX_LANES];
    size_t image; /* offset of the image in the lane's host memory */
    /* By device: the io regions of another one, by lane, from which this one copies; NULL: it does not
     * reach them. */
    ggl_buffer *(*peer)[MAX_LANES];
    bool in_place[MAX_LANES];
    size_t io_size, arena_size, copied_size, consts_size;
    size_t mapped_size, rows_size, states_size; /* for ggl_sched_memory */
    import *imports;
    size_t n_imports, cap_imports;
    pieces copies, stores;    /* of uploaded weights and constants; of stores */
    pieces repacks;           /* of repacked weights */
    node_list consts, copied; /* constants and weights that ggl_sched_alloc uploads */
    ggl_loc *repacked;        /* by tensor id: the repacked copy of a weight; region -1: none */
    bool *read_otherwise;     /* by tensor id: the original is read, too, by other than products */
    node_list repack;         /* weights to repack, in the order of their copies in `repacks` */
    size_t repacked_size, dropped_size; /* bytes; dropped: originals that are no longer needed */
    /* The state of calls for flights. The following members are under sched.lock: */
    struct ggl_sched *s;
    int station;    /* the first device with this backend, whose following members count */
    bool is_called; /* a thread is calling the backend */
    bool has_thread;
    pthread_t thread;    /* calls the backend, unless the user's thread does it while it waits */
    pthread_cond_t wake; /* the thread sleeps until there is something to do */
} device;

/* A node that runs on another backend than the wished one, which refused it. */
typedef struct fallback {
    const ggl_tensor *node, *refused; /* refused: the node itself, or a node of its body */
    const char *why;
    int wished, used; /* backends */
} fallback;

/* The positions of a slot in a batch; high < 0: it has none. */
typedef struct pos_range {
    int32_t low, high;
} pos_range;

/* A batch in flight, or one whose outputs are not collected yet. It passes one segment after the other,
 * and none before the flight that began before it has: so stores see batches in their order. */
typedef struct flight {
    int64_t n;       /* size of the batch */
    int32_t *row;    /* indices of the requested rows, [n_rows]; its memory is for sched.n_rows */
    int64_t n_rows;  /* 0: no outputs, so the tail does not run */
    bool ends_early; /* the rest of the tail does not run */
    int lane;
    uint64_t ticket;      /* 0: it is not collected, and removed as soon as it is done */
    uint64_t mark;        /* of the backend that passes it (ggl_backend_vtable.mark) */
    pos_range *seen;      /* [n_slots], if there are several lanes */
    uint64_t n_pages_set; /* as in the scheduler when it began */
    bool rewrites;        /* it may write rows that flights before it still read */
    /* The following members are under sched.lock: */
    size_t next;     /* index of the segment that it passes */
    bool is_passing; /* a thread is calling the segment's backend for it */
    bool is_started; /* the segment's `run` was called, but departing values are not fetched yet */
    bool is_over;    /* done or failed, and no thread is at it */
    ggl_error err;   /* its failure, or that of an earlier flight; GGL_OK if neither failed */
} flight;

typedef struct output {
    const ggl_tensor *t;
    int backend, phase;
    size_t from, row;   /* offset in the io region; bytes of one row */
    size_t to;          /* offset in the lane's host memory, [n_rows][count] f32 */
    size_t computed_by; /* index of the segment */
} output;

struct ggl_sched {
    ggl_graph *g;
    ggl_sched_params params;
    int64_t n_batch, n_rows; /* most elements of a batch, most rows of outputs, in one run */
    device *dev;
    int n_dev;
    int *backend;   /* by tensor id: where a node runs */
    bool *in_trunk; /* by tensor id */
    bool *is_early; /* by tensor id: a node of the tail that params.early needs */
    bool *watched;  /* by tensor id: a node whose operands are shown; NULL if no node's are */
    size_t shown_size, n_operands; /* most bytes, and number, of the operands of a watched node */
    char *shown;                   /* [shown_size]: operands from devices with other memory */
    const void **operand;          /* [n_operands] */
    pthread_mutex_t watch_lock;    /* held while params.watch->see is called and `shown` is used */
    segment *seg; /* those of the trunk, then those of the tail, the early ones first */
    size_t n_segs, n_trunk_segs, cap_segs;
    size_t n_early_segs;          /* those of the trunk and the early ones */
    size_t load_done, load_total; /* bytes of weights, for params.progress */
    output *out;
    fallback *fallback;
    size_t n_fallbacks, cap_fallbacks;
    int n_lanes;
    int out_lane; /* of the flight that was collected last */
    /* Threads: while flights are on their way, each device's own thread calls its backend, and so does
     * the user's thread, for the flight that it waits for. With one lane there are no threads, the
     * user's does everything, and the lock is not used. */
    bool has_threads, stops;
    pthread_mutex_t lock; /* guards the members of flights and devices marked "under sched.lock" */
    pthread_mutex_t cancel_lock; /* held while params.cancelled is called */
    pthread_cond_t wake;      /* the user's thread sleeps until its flight is over or can go on */
    bool user_sleeps;         /* the user's thread is blocked on `wake` */
    flight *awaited;          /* the flight that the user's thread waits for; NULL if none */
    flight flight[MAX_LANES]; /* by lane */
    flight *order[MAX_LANES]; /* those in flight or not collected, oldest first */
    int n_flights;            /* of order[] */
    bool is_idle;             /* no backend has work since all were waited for */
    ggl_error uncollected; /* error of a failed flight without a ticket; the next call returns it */
    uint64_t last_ticket;
    char *input;       /* [input_size]: all inputs, as ggl_sched_set leaves them */
    char *lane_input;  /* [n_lanes][input_size]: inputs of the lane's batch; with one lane, input */
    size_t *input_at;  /* by index of input: its offset */
    size_t input_size; /* bytes of all inputs */
    int64_t *input_n;  /* by index of input: how many elements of the batch are set */
    uint64_t n_pages_set; /* how often the input "page" has changed */
    byte_range *stale;    /* [n_lanes][inputs]: set since the lane got it; only if not batched */
    char *host
        [MAX_LANES]; /* by lane, [host_size]: images of the io regions, then outputs of the trunk */
    void *host_block[MAX_LANES]; /* the memory that has host[] at a multiple of HOST_PAGE */
    size_t host_size;
    bool allocated;
    os_map cache; /* repacked weights of an earlier run; their regions may lie in it */
    ggl_cache_use cache_use;
    char cache_note[256];
};

/* Returns the input "page" as set for the next run; NULL if not set, or the graph has no such input. */
const int32_t *ggl_sched_pages(const ggl_sched *s);
/* Gives each slot pages of its own, if there are enough of them. */
void ggl_sched_own_pages(ggl_sched *s);
/* Returns the lane's copy of the input t; NULL if t is not an input. */
const int32_t *ggl_sched_lane_input(const ggl_sched *s, int lane, const ggl_tensor *t);
/* Brings the lane's inputs up to date for its next batch, of n elements. */
void ggl_sched_fill_lane(ggl_sched *s, int lane, int64_t n);

/* Sets segment.read_until of all segments. */
ggl_status ggl_sched_find_readers(ggl_sched *s, ggl_error *err);
/* Sets flight.rewrites of a flight that begins now, whose lane has its inputs. */
void ggl_sched_note_places(ggl_sched *s, flight *f);
/* True if flight i, in the order of their beginning, may write the stores of its next segment: no
 * flight before it still reads what it writes. */
bool ggl_sched_may_write(const ggl_sched *s, int i);
/* Passes the flight through its next segment, in two parts, each of which calls the segment's backend:
 * brings in what the segment needs, runs it, and lets the device bring out what departs and the outputs;
 * then waits for that, and fetches what the device cannot bring out. Between the two an asynchronous
 * backend computes. GGL_CANCELLED if params.cancelled
 * returns true. */
ggl_status ggl_sched_start_segment(ggl_sched *s, flight *f, ggl_error *err);
ggl_status ggl_sched_end_segment(ggl_sched *s, const flight *f, ggl_error *err);
/* Returns how many segments, from the first on, the flight passes: the trunk's, and, if it has
 * outputs, the tail's, which come after them, or the early ones of these. */
size_t ggl_sched_n_passed(const ggl_sched *s, const flight *f);
/* Lets devices copy from each other where they can. */
ggl_status ggl_sched_join_peers(ggl_sched *s, ggl_error *err);
/* Starts a thread for each device, if several batches may be in flight; stops them. */
ggl_status ggl_sched_start_threads(ggl_sched *s, ggl_error *err);
void ggl_sched_stop_threads(ggl_sched *s);

/* Sets s->watched, before nodes are divided into segments. */
ggl_status ggl_sched_find_watched(ggl_sched *s, ggl_error *err);
/* Keeps the operands of the watched nodes of segment i, which all have places, until its end. own[] as
 * for ggl_sched_provide_value. */
ggl_status ggl_sched_keep_watched(ggl_sched *s, size_t i, const size_t *own, ggl_error *err);
/* Shows what the watched nodes of the flight's segment have read; the segment is done. */
ggl_status ggl_sched_show_watched(ggl_sched *s, const flight *f, ggl_error *err);

/* Plans everything: places nodes, cuts segments, sizes all memory, compiles the plans. */
ggl_status ggl_sched_build(ggl_sched *s, ggl_error *err);
/* Writes a description of the node, with the type of its weight if it reads one; returns buf.
 * Example: "linear (blk.3 q, llama.arch:31) with weights of type iq2_xs" */
const char *ggl_sched_node_text(const ggl_tensor *t, char *buf, size_t size);
/* Sets s->backend for every computed node, and adds to s->fallback those that a backend refused. */
ggl_status ggl_sched_place(ggl_sched *s, ggl_error *err);
/* Returns the range of params.host that holds the weight t, and sets *index to its number;
 * without such a range, returns the weight's own memory and sets *index to params.n_host. */
ggl_host_range ggl_sched_host_range(const ggl_sched *s, const ggl_tensor *t, int *index);

/* Reports `size` more bytes of loaded weights to params.progress. GGL_CANCELLED if that returns
 * false. */
ggl_status ggl_sched_loaded(ggl_sched *s, size_t size, ggl_error *err);

static inline ggl_status ggl_sched_no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the schedule");
}

/* A hint that ends messages about a KV cache that does not fit. */
extern const char ggl_sched_hint_smaller[];

/* Returns the phase that computes the node t. */
static inline int ggl_sched_phase(const ggl_sched *s, const ggl_tensor *t) {
    return s->in_trunk[t->id] ? TRUNK : TAIL;
}

/* Sets s->in_trunk, s->is_early, s->seg and the numbers of segments, from s->backend. GGL_NOT_FOUND:
 * there is no output params.early. */
ggl_status ggl_sched_cut(ggl_sched *s, ggl_error *err);
/* Appends t; false: out of memory. */
bool ggl_node_list_push(node_list *l, ggl_tensor *t);

/* Notes that segment i needs the device's copy of the value t for the phase. */
void ggl_sched_use_value(device *d, int phase, const ggl_tensor *t, size_t i);
/* Sets loc of all values in use, io_size, and where the images are in the lane's host memory. */
ggl_status ggl_sched_place_values(ggl_sched *s, ggl_error *err);
/* Makes x, an input or the value of another segment, available to segment i: where the segment's
 * device has it, or else by a move, one for each backend and phase. own[], by tensor id, is the index of
 * the segment that computes a node, plus 1. */
ggl_status ggl_sched_provide_value(ggl_sched *s, size_t i, const ggl_tensor *x, const size_t *own,
                                   ggl_error *err);
/* Lists the outputs in s->out. Their values are kept until all segments have run. */
ggl_status ggl_sched_list_outputs(ggl_sched *s, const size_t *own, ggl_error *err);
/* Sets the offsets of moves, of what departs, and of outputs, once all values are placed. */
ggl_status ggl_sched_set_offsets(ggl_sched *s, const size_t *own, ggl_error *err);
/* Fails because t, for a batch of n, does not fit into memory. */
ggl_status ggl_sched_too_large(const ggl_tensor *t, int64_t n, ggl_error *err);

/* Sets *loc to a place for `size` bytes, a multiple of 64: after what the last of the pieces holds,
 * or at the start of a new piece where that one would exceed the device's max_buffer. `first` is the
 * region of the first piece; -1: it gets a new one, as all others do. False: out of memory. */
bool ggl_sched_place_in(device *d, pieces *p, int first, size_t size, ggl_loc *loc);

/* Decides which weights are repacked and where the copies go; call after segments are cut. */
ggl_status ggl_sched_repack_place(ggl_sched *s, ggl_error *err);
/* Allocates the memory of repacked weights and fills it, from params.cache or by repacking. */
ggl_status ggl_sched_repack(ggl_sched *s, ggl_error *err);

/* Sets at[k] to the offset in the cache file of device k's first region of repacked weights, and
 * returns the file's size. */
size_t ggl_sched_cache_size(const ggl_sched *s, size_t *at);
/* Returns the offset in the cache file of region `piece` of the device's `repacks`, from that of its
 * first one. If piece is their number: where a further region would begin. */
size_t ggl_sched_cache_offset(const device *d, size_t piece);
/* Maps params.cache into s->cache if it holds exactly what this run would write; else notes the
 * reason in s->cache_note, unless there is no such file. */
void ggl_sched_cache_open(ggl_sched *s);
/* Writes params.cache from the devices' repacked regions; a failure is only noted. */
void ggl_sched_cache_write(ggl_sched *s);

#endif
