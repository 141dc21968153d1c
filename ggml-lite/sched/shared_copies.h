/* The blocks of memory of ggl_repacked: each has the copies that one device of one scheduler was the first to need. A block is freed with
 * the last scheduler that reads a copy in it. */
#ifndef GGL_SCHED_SHARED_COPIES_H
#define GGL_SCHED_SHARED_COPIES_H

#include "ggl/internal/repacked.h"
#include "schedule.h"

/* A repacked weight in a block. */
struct shared_copy {
    struct shared_block *block;
    const void *weight; /* what it is a copy of: the place, type and shape of the weight */
    ggl_type type;
    int64_t ne[GGL_MAX_DIMS];
    size_t size, offset; /* bytes, and where it begins in the block */
    int64_t n_rows;      /* that are made, counted over all matrices; guarded by the block's lock */
};

/* Finds the device's copy of the weight t, of `size` bytes, in a block that another device or scheduler has allocated, and makes the block a
 * region of the device. *copy is NULL if there is none; else *loc is its place, and *is_made says whether it is complete. */
ggl_status ggl_shared_copy_find(const schedule *s, device *d, const ggl_tensor *t, size_t size,
                                shared_copy **copy, ggl_loc *loc, bool *is_made, ggl_error *err);
/* Allocates a piece of the device's copies as a block, and offers those of weights that others may read. Sets the region to a buffer of it,
 * and the copies in d->repack.shared. GGL_UNSUPPORTED: the device cannot compute in host memory, or there is no table. */
ggl_status ggl_shared_block_new(const schedule *s, device *d, const struct piece *p,
                                ggl_error *err);
/* Nobody else writes to the copy between these. NULL is fine: a copy that is not shared. */
void ggl_shared_copy_lock(shared_copy *c);
void ggl_shared_copy_unlock(shared_copy *c);
/* After the buffers of the device were freed: it reads no block any more. */
void ggl_shared_copies_leave(const schedule *s, device *d);

#endif
