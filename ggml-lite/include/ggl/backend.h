/* The interface of a backend: one struct of function pointers. The scheduler (sched.h) cuts a graph
 * into segments of one backend each; a backend compiles its segments to plans and runs them. A
 * backend never sees the whole model, other backends, or files.
 *
 * Memory: a backend allocates buffers. A plan addresses memory as (region, offset); each run passes
 * the buffers of the regions. So plans can be compiled, and all sizes printed, before anything is
 * allocated.
 *
 * Threads: one thread at a time calls a backend, not always the same one. Different backends, also of
 * the same device, may be called at the same time.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef GGL_BACKEND_H
#define GGL_BACKEND_H

#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_backend ggl_backend;
typedef struct ggl_buffer ggl_buffer; /* defined by the backend */
typedef struct ggl_plan ggl_plan;     /* begins with arena_size; the backend defines the rest */

enum {
    GGL_REGION_ARENA, /* values between nodes: plan->arena_size bytes, contents lost between runs */
    GGL_REGION_IO,    /* inputs, outputs, values that cross segments */
    GGL_REGION_STORES,   /* KV caches and states of all slots: the first region of them */
    GGL_REGION_REPACKED, /* weights as repack() writes them: the first region of them */
    GGL_REGION_WEIGHT    /* the first of any number of regions, each of weights and constants (host
                            memory used in place, or uploaded copies), or of further stores or
                            repacked weights, where one buffer may not hold all of a kind */
};

/* The place of a tensor that other segments, or the host, use, too. */
typedef struct ggl_loc {
    int region; /* -1: the tensor has no such place; if computed, the plan puts it into its arena */
    size_t offset;
    /* Of a store of rows: bytes from a page to the next one, page_size or more; pages of other stores may lie between (ggl_backend.lazy).
     * Else not read. */
    size_t step;
} ggl_loc;

/* Bytes to copy from one buffer to another. */
typedef struct ggl_copy_range {
    size_t to, from, size;
} ggl_copy_range;

/* A handle of a device's memory, by which another backend reaches it. The numbers are those of Vulkan. */
typedef struct ggl_shared {
    int fd;                   /* belongs to whoever has the handle */
    uint32_t kind;            /* of the fd: a VkExternalMemoryHandleTypeFlagBits */
    uint32_t memory_type;     /* of the device */
    unsigned char owner[32];  /* the device's UUID, and that of its driver */
    size_t size, memory_size; /* bytes of the buffer, and of its memory */
} ggl_shared;

typedef struct ggl_segment {
    const ggl_graph *graph;
    ggl_tensor *const
        *node; /* the nodes to compute; sources come before their readers; no leaves */
    int n_node;
    int64_t n_max; /* the largest batch of a run */
    /* By tensor id: leaves, and values that enter or leave the segment. Batched values are dense:
     * element e for element i of the batch is at offset + (i * ggl_count + e) * element size. */
    const ggl_loc *loc;
    /* By store id: where the store begins; region -1: it is on another device. NULL: no node uses a
     * store. */
    const ggl_loc *store_loc;
    int64_t n_slots;
    /* By tensor id: the repacked copy of a weight, which only products read; region -1: there is
     * none. NULL: no weight is repacked. */
    const ggl_loc *repacked;
    /* By tensor id: the repacked copy is not made yet, so that products read the weight at its loc. A
     * weight that waits has one. The scheduler changes true to false, between runs alone. NULL: all
     * copies are made before any run (ggl_backend_vtable.repack_rows). */
    const bool *waits;
} ggl_segment;

struct ggl_plan {
    size_t arena_size;
};

typedef struct ggl_backend_vtable {
    /* Frees the backend. The caller has freed all buffers and plans before. */
    void (*close)(ggl_backend *b);

    /* Allocates a zeroed buffer of `size` bytes. Offsets of values in it are multiples of 64. With
     * host: makes a buffer of that memory without a copy; GGL_UNSUPPORTED if the device cannot, and the caller allocates
     * and uploads. host belongs to the caller. It is not written to, with two exceptions: GGL_REGION_IO, where a
     * backend that is not asynchronous runs in it, and one that is only copies from and to it, which
     * may take effect as late as a run does; and GGL_REGION_REPACKED, where `repack` of a backend that is not asynchronous writes to it, and other
     * backends may read what it has written. `region` says what the buffer
     * is for, as a device may have several kinds of memory: its number in runs, but GGL_REGION_WEIGHT
     * for all regions of weights, GGL_REGION_STORES for all of stores, and GGL_REGION_REPACKED for
     * all of repacked weights. */
    ggl_status (*alloc)(ggl_backend *b, int region, size_t size, const void *host, ggl_buffer **out,
                        ggl_error *err);
    void (*free)(ggl_backend *b, ggl_buffer *buf);
    /* Copies host memory to a buffer; src may change as soon as the call returns, but for a buffer of
     * GGL_REGION_WEIGHT only after `wait`, which also tells an error that comes late. */
    ggl_status (*upload)(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                         size_t size, ggl_error *err);
    ggl_status (*download)(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                           size_t size, ggl_error *err);
    /* Copies n ranges between buffers of this backend, or within one; a buffer may be host memory (see
     * alloc). No byte is written that another
     * of the ranges reads or writes. May return before the work is done. */
    ggl_status (*copy)(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                       const ggl_copy_range *range, size_t n, ggl_error *err);
    /* Sets bytes to 0. */
    ggl_status (*clear)(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                        ggl_error *err);

    /* Returns NULL if the backend can run the node: it has the operator for these types, or, for a
     * CALL, a kernel for the composite of that name (ggl_composite_of; "own:NAME" is an op of a
     * descriptor). Else returns the reason, a static text such as "no product with weights of this
     * type". A CALL that is refused is replaced by its body. */
    const char *(*refuses)(const ggl_backend *b, const ggl_tensor *node);

    /* Compiles a segment; *out is freed by plan_free. Allocates host memory for the plan only, no
     * buffers. The graph and s->store_loc outlive the plan; *s itself need not. */
    ggl_status (*compile)(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err);
    /* Runs the plan for a batch of n elements (1 .. n_max). region[] has the buffers by region
     * number. May return before the work is done. Runs of one backend take effect in order, and a
     * later upload, download, copy, clear or wait takes effect after them. Allocates nothing. */
    ggl_status (*run)(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                      ggl_error *err);
    /* Returns when all runs are done, and all weights are there. */
    ggl_status (*wait)(ggl_backend *b, ggl_error *err);
    /* For a backend that is asynchronous; both may be NULL, and `wait` then stands for them. mark
     * starts all that was called before, and sets *mark to a number that stands for it; wait_for
     * returns when this is done, though what was called later may not be. */
    ggl_status (*mark)(ggl_backend *b, uint64_t *mark, ggl_error *err);
    ggl_status (*wait_for)(ggl_backend *b, uint64_t mark, ggl_error *err);
    /* With mark; may be NULL. Looks whether wait_for would return at once, waits for it for some microseconds at most, or up to a
     * millisecond if it has been asked for the same mark for long, and sets *done. So the caller can start a batch that comes meanwhile. */
    ggl_status (*poll)(ggl_backend *b, uint64_t mark, bool *done, ggl_error *err);
    /* From device to device; both may be NULL. share makes a handle of a buffer's memory. borrow makes
     * a buffer of such memory, whichever backend's it is, and takes the fd in any case; only `copy`
     * reads the buffer, and only after the other backend has done what writes to it. It may be freed
     * after the other buffer. GGL_UNSUPPORTED: the memory cannot be reached. */
    ggl_status (*share)(ggl_backend *b, const ggl_buffer *buf, ggl_shared *out, ggl_error *err);
    ggl_status (*borrow)(ggl_backend *b, const ggl_shared *from, ggl_buffer **out, ggl_error *err);
    void (*plan_free)(ggl_backend *b, ggl_plan *p);
    /* Writes, to show to users, what one run for a batch of n does ("120 steps", "52 dispatches, 40
     * barriers"), cut off at `size`. The plan need not have run. NULL: there is nothing to say. */
    void (*describe)(ggl_backend *b, ggl_plan *p, int64_t n, char *text, size_t size);

    /* Repacking: a backend may have a layout of its own for weights, which products (LINEAR) read
     * in place of the file's layout; for example with rows interleaved for vectors. All three may
     * be NULL: weights are read as they are. The backend decides which weights gain by it. The
     * scheduler finds the nodes that read them, allocates the memory, and keeps the result in a
     * file, so that a backend knows no files and all sizes are known before anything is
     * allocated. */

    /* Returns the bytes of the repacked weight, a multiple of 64 and of its number of matrices
     * (along dimensions 2 and 3), each of which is repacked by itself; 0: the weight is not
     * repacked. */
    size_t (*repack_size)(const ggl_backend *b, const ggl_tensor *weight);
    /* Writes the repacked weight, made from weight->data, to dst at offset, a multiple of 64. The
     * bytes depend on nothing but the weight and repack_layout. Called before any run, except as
     * repack_rows says. An asynchronous backend may return before the work is done: the data stays
     * until `wait`. */
    ggl_status (*repack)(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *weight,
                         ggl_error *err);
    const char
        *repack_layout; /* "rows16 1": the layout's name; changes whenever the bytes change */
    /* Of a backend whose products give the same bits with the weight as with its repacked copy, and
     * which heeds ggl_segment.waits: `repack` may be called between runs, too, and for parts of the
     * weight: for whole matrices, or for rows of one matrix from a multiple of this number on, at
     * least as many. A part is like a weight of these rows alone, and its copy begins where that of
     * the matrix's rows before it would end. 0: the weight must be repacked whole, before any run.
     * NULL: 0 for all weights. */
    int64_t (*repack_rows)(const ggl_backend *b, const ggl_tensor *weight);
} ggl_backend_vtable;

struct ggl_backend {
    const ggl_backend_vtable *v;
    char name[32];         /* "cpu", "cpu1", "vulkan0" */
    char description[256]; /* the device, to show to users */
    size_t memory;         /* bytes it can use; 0: not known */
    size_t max_buffer;     /* most bytes of one buffer; 0: no limit */
    bool async; /* run returns before the work is done; the next one may be called meanwhile */
    bool
        software; /* the device is emulated on the CPU, slower than the cpu backend: it is used only
                      if it is named */
    bool looks_back; /* it reads stores after a run, so no two may share memory */
    /* A buffer's memory costs nothing until it is touched. The scheduler then puts the same page of all stores side by side, so that a
     * short text touches the beginning of one buffer in place of that of each store. Not with a max_buffer. */
    bool lazy;
    /* The scheduler sets it while it calls compile and run. If it returns true, compile returns
     * GGL_CANCELLED, and run stops between two steps with it and leaves what it has written as it
     * is. A backend may ignore it. May be NULL. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    /* The scheduler sets it while it calls run, if weights in host memory are still on their way there. A backend that uses them
     * in place should call it before a step, once for each range of weights that the step reads, and then with NULL and 0, which returns when
     * it is worth reading them. It is only for speed. May be NULL, and a backend may ignore it. */
    void (*reads)(void *ctx, const void *data, size_t size);
    void *reads_ctx;
    /* Backends with the same text, such as "cpu", give the same bits for the same nodes and keep stores alike, so that what one has saved
     * another one goes on with. "": only those of the same name do. */
    char alike[16];
};

/* --- backends in shared objects --------------------------------------------------------------- */

/* The version of the binary interface. A plug-in with another number is not loaded. The number
 * grows by one with each release in which any of these changes, even if something is only added:
 * structs with members in this header, graph.h, program.h and types.h; ggl_error and
 * ggl_backend_params; the rows of ops.def, status.def and types.def; the layout of stores of rows;
 * the contract of a function of the vtable. New functions of the library do not count, because a
 * plug-in is linked with its own copy of the library. */
#define GGL_BACKEND_ABI 5

/* The symbol `ggl_backend_plugin` of a shared object that ggl_backend_open loads by its path:
 *
 *     const ggl_plugin ggl_backend_plugin = {GGL_PLUGIN_VERSION, "mine", mine_open};
 *
 * open creates the backend: params is not NULL; on failure *out is NULL and err has the reason. */
struct ggl_backend_params;
typedef struct ggl_plugin {
    uint32_t abi;                        /* GGL_BACKEND_ABI */
    uint32_t vtable_size;                /* sizeof(ggl_backend_vtable) */
    uint32_t n_ops, n_types, n_statuses; /* rows of ops.def, types.def and status.def */
    const char *name;
    ggl_status (*open)(ggl_backend **out, const struct ggl_backend_params *params, ggl_error *err);
} ggl_plugin;
#define GGL_PLUGIN_VERSION                                                                         \
    GGL_BACKEND_ABI, sizeof(ggl_backend_vtable), GGL_OP_COUNT, GGL_TYPE_COUNT, GGL_STATUS_COUNT

/* Returns why the backend can run neither the node nor, for a call, its body; NULL if it can. *part
 * (may be NULL) is set to the refused node, which is `node` or one of its body, or to NULL. */
GGL_API const char *ggl_refusal(const ggl_backend *b, const ggl_tensor *node,
                                const ggl_tensor **part);

#ifdef __cplusplus
}
#endif
#endif
