/* A device of the schedule: a backend, its memory, and where everything lies in it. */
#ifndef GGL_SCHED_DEVICE_H
#define GGL_SCHED_DEVICE_H

#include <stdatomic.h>

#include "graph/graph_impl.h"
#include "ggl/backend.h"

enum { TRUNK, TAIL, N_PHASES };

/* Batches that may be in flight at once. Each has a lane: its own copy of the inputs, of the values that
 * cross segments, and of the outputs. */
enum { MAX_LANES = 16 };

/* The segments during which a device must hold a value in its io region. first: computes the value, or
 * the value is moved there before it. last: reads the value, or the value is moved elsewhere before it;
 * the number of segments if it is needed until the end of the run. */
typedef struct lifetime {
    const ggl_tensor *t; /* NULL: the device does not hold the value */
    size_t first, last;
    bool in_tail; /* a trunk value that tail nodes read in place, without a move */
} lifetime;

/* Buffers that are filled one after another, each of at most ggl_backend.max_buffer bytes. */
typedef struct pieces {
    struct piece {
        int region;
        size_t size; /* bytes used so far */
    } * at;
    size_t n, cap;
} pieces;

/* The io region, by lane, and its image in the lane's host memory, for values on their way from or to
 * other devices. A device that computes in host memory has its io region there, in place. Others copy
 * between the two: by themselves, if they reach the lane's host memory as a buffer `host`, else (NULL) by
 * uploads and downloads. */
typedef struct device_io {
    size_t size;
    ggl_buffer *at[MAX_LANES]; /* a run uses its lane's buffer as region[GGL_REGION_IO] */
    bool in_place[MAX_LANES];
    ggl_buffer *host[MAX_LANES];
    size_t image; /* offset of the image in the lane's host memory */
    /* By device: the io regions of another one, by lane, from which this one copies; NULL: it does not
     * reach them. */
    ggl_buffer *(*peer)[MAX_LANES];
} device_io;

/* A range of host memory that the scheduler has asked a device to use in place. */
typedef struct import {
    const char *data;
    size_t size;
    int region; /* -1: the device cannot use it in place */
} import;

/* Weights as they are in the file, and constants: used in place, or uploaded. */
typedef struct device_weights {
    import *imports;
    size_t n_imports, cap_imports;
    pieces copies;            /* buffers of uploaded weights and constants */
    node_list consts, copied; /* constants and weights that ggl_sched_alloc uploads */
    size_t mapped_size, copied_size, consts_size;
} device_weights;

/* KV caches and recurrent states. */
typedef struct device_stores {
    ggl_loc *loc; /* by store id; region -1: the store is on another device */
    pieces pieces;
    struct page_group *group; /* stores.c */
    size_t n_groups, cap_groups;
    size_t rows_size, states_size;
} device_stores;

/* Copies of weights that other schedulers may read, too (shared_copies.h). */
typedef struct shared_copy shared_copy;
struct shared_block;

/* Weights in the backend's own layout. */
typedef struct device_repack {
    node_list list;       /* weights whose copies are to be made, by address */
    ggl_loc *loc;         /* by tensor id: the repacked copy of a weight; region -1: none */
    bool *read_otherwise; /* by tensor id: the original is read, too, by other than products */
    bool *waits;          /* by tensor id: the copy is not made yet */
    pieces pieces;
    size_t size, dropped_size; /* bytes; dropped: originals that are no longer needed */
    shared_copy **shared;      /* by tensor id; NULL: the copy is this device's alone */
    struct block_use {
        struct shared_block *at;
        int region;
    } * block; /* that hold shared copies, also those of others, which are not in `pieces` */
    size_t n_blocks, cap_blocks;
    /* Copies that are made between runs (repack_late.c): */
    bool is_late;     /* some are */
    size_t all, left; /* bytes of their originals, and of those that are not repacked yet */
    size_t next;      /* index in `list` of the next one */
    int64_t
        next_row; /* its first row, counted over all matrices, of which this device does not know that it is repacked */
    uint64_t batch;           /* number of the last batch with outputs */
    int64_t batch_n;          /* its size; 0: there was none */
    double run, debt;         /* seconds that it ran, and that repacking has taken too long */
    int64_t n_batches;        /* batches with outputs that have begun */
    _Atomic int64_t spent_ns; /* on late copies; any thread may read it */
} device_repack;

typedef struct device {
    ggl_backend *b;
    ggl_buffer **region; /* by region number; NULL until allocated */
    int n_regions;
    ggl_loc *loc[N_PHASES];   /* by tensor id; region -1: the phase does not use it */
    lifetime *life[N_PHASES]; /* by tensor id; only while the schedule is built */
    size_t arena_size;
    device_io io;
    device_weights weights;
    device_stores stores;
    device_repack repack;
} device;

#endif
