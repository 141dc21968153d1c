/* What a backend is: one struct of function pointers. The scheduler (sched.h) cuts a graph into
 * segments, one backend each; a backend compiles its segments to plans and runs them. A backend
 * never sees the whole model, other backends, or files.
 *
 * Memory: a backend hands out buffers. A plan names memory as (region, offset); which buffers the
 * regions are is said at each run, so a plan can be compiled, and every size printed, before
 * anything is allocated. */
#ifndef GGL_BACKEND_H
#define GGL_BACKEND_H

#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_backend ggl_backend;
typedef struct ggl_buffer ggl_buffer; /* the backend's own */
typedef struct ggl_plan ggl_plan;     /* begins with arena_size; the rest is the backend's own */

enum {
    GGL_REGION_ARENA, /* values between nodes: plan->arena_size bytes, contents lost between runs */
    GGL_REGION_IO,    /* inputs, outputs, constants, values that cross segments */
    GGL_REGION_STORES,   /* what slots keep */
    GGL_REGION_REPACKED, /* weights as repack() lays them out */
    GGL_REGION_WEIGHT    /* this and all above: host memory ranges that hold weights, imported or
                            uploaded */
};

typedef struct ggl_loc { /* where a tensor lies that is not private to one segment */
    int region;          /* -1: nowhere outside; the plan puts it into its arena */
    size_t offset;
} ggl_loc;

typedef struct ggl_segment {
    const ggl_graph *graph;
    ggl_tensor *const *node; /* what to compute, in an order that works; no leaves */
    int n_node;
    int64_t n_max; /* the largest batch a run will have */
    const ggl_loc
        *loc; /* by tensor id: leaves, and values from or for others. Batched ones lie densely:
               * element e of batch i at offset + (i * ggl_count + e) * element size */
    /* by store id: offset of slot 0 in GGL_REGION_STORES; slots follow each other */
    const size_t *store_loc;
    int64_t n_slots;
    const ggl_loc *repacked; /* by tensor id: of a weight, where repack() has put it, for products;
                                region -1: it is only at loc. NULL: none is repacked */
} ggl_segment;

struct ggl_plan {
    size_t arena_size;
};

typedef struct ggl_backend_vtable {
    /* Frees the backend. Buffers and plans are gone before. */
    void (*close)(ggl_backend *b);

    /* A buffer of `size` bytes, 64-byte aligned, zeroed; or, with host, that memory itself without
     * a copy: GGL_UNSUPPORTED if this device cannot, and the caller allocates and uploads. host
     * stays the caller's, and is not written to. `region` is what the buffer will be in runs
     * (GGL_REGION_WEIGHT for that and all above): a device may have memory of several kinds. */
    ggl_status (*alloc)(ggl_backend *b, int region, size_t size, const void *host, ggl_buffer **out,
                        ggl_error *err);
    void (*free)(ggl_backend *b, ggl_buffer *buf);
    ggl_status (*upload)(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                         size_t size, ggl_error *err);
    ggl_status (*download)(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                           size_t size, ggl_error *err);
    /* Within the backend; the ranges may not overlap. */
    ggl_status (*copy)(ggl_backend *b, ggl_buffer *dst, size_t dst_offset, const ggl_buffer *src,
                       size_t src_offset, size_t size, ggl_error *err);
    ggl_status (*clear)(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                        ggl_error *err);

    /* NULL: it has this operator for these types; for a CALL: it knows the composite by name. Else
     * why not, a static text such as "no product with weights of this type". A composite that it
     * does not know is run as its body says. */
    const char *(*refuses)(const ggl_backend *b, const ggl_tensor *node);

    /* Plans touch no buffer; compile allocates no more than its own description. */
    ggl_status (*compile)(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err);
    /* The first n (1 .. n_max) of the batch. region[] by number. May return before the work is
     * done; runs of one backend happen in order, and upload, download, copy, clear and wait come
     * after them. Allocates nothing. */
    ggl_status (*run)(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                      ggl_error *err);
    ggl_status (*wait)(ggl_backend *b, ggl_error *err);
    void (*plan_free)(ggl_backend *b, ggl_plan *p);

    /* A layout of the backend's own for a weight, which products (LINEAR) read in place of the
     * file's: rows side by side in vectors, or what a device's matrix unit wants. All three may be
     * NULL: then weights are read as they are. It is for the backend to say which weights gain by
     * it, and for the scheduler to find who reads them, to take the memory, and to keep the result
     * on a disk: so a backend knows no files, and every size stands in the plan. */

    /* Bytes of the weight in that layout, a multiple of 64 and of its number of matrices (ne[2] *
     * ne[3]), each of which is laid out by itself; 0: it is used as it is. */
    size_t (*repack_size)(const ggl_backend *b, const ggl_tensor *weight);
    /* Writes the weight, from weight->data, to dst at a multiple of 64. The same bytes each time:
     * they depend on nothing but the weight and the name of the layout. Called before any run. */
    ggl_status (*repack)(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *weight,
                         ggl_error *err);
    const char *repack_layout; /* "rows16 1": names the layout; another name for other bytes */
} ggl_backend_vtable;

struct ggl_backend {
    const ggl_backend_vtable *v;
    char name[32];         /* "cpu", "cpu1", "vulkan0" */
    char description[128]; /* the device, for people */
    size_t memory;         /* bytes it can use; 0: not known */
    size_t max_buffer; /* most bytes of one buffer; 0: no limit. Weights are spread over several */
    bool async;        /* run returns before the work is done: it is started before others run */
    bool software; /* a device emulated on the CPU, slower than the cpu backend: used only if it is
                          named */
    /* Set by the scheduler while it calls run: true asks the run to stop between two steps with
     * GGL_CANCELLED, and to leave what it has written as it is. A backend may ignore it. NULL: none.
     */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
};

/* --- backends in shared objects --------------------------------------------------------------- */

/* What a loaded backend and its host have to agree on; different numbers are never mixed. It grows
 * by one with each release in which any of these is not what it was in the release before, be it
 * only that something was added: the structs of this header, of graph.h, program.h and types.h that
 * have members, ggl_error, ggl_backend_params; the rows of ops.def, status.def and types.def; how
 * rows of a store lie; what a function of the vtable must do. New functions of the library do not
 * count: a backend brings its own copy. */
#define GGL_BACKEND_ABI 2

/* The symbol `ggl_backend_plugin` of a shared object that ggl_backend_open loads by its path:
 *
 *     const ggl_plugin ggl_backend_plugin = {GGL_PLUGIN_VERSION, "mine", mine_open};
 *
 * open as that of any backend: params is not NULL; on failure *out is NULL and err says why. */
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

/* Why the backend cannot run the node, neither by itself nor as its body says; NULL: it can. *part
 * (may be NULL): what of it is refused, the node or one of its body. */
GGL_API const char *ggl_refusal(const ggl_backend *b, const ggl_tensor *node,
                                const ggl_tensor **part);

#ifdef __cplusplus
}
#endif
#endif
