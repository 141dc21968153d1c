/* A recording: a plan's dispatches for one set of buffers and one bucket of batch sizes, in
 * command buffers that are submitted repeatedly. */
#ifndef VULKAN_RECORDING_H
#define VULKAN_RECORDING_H

#include "memory.h"
#include "pace.h"
#include "profile.h"

enum { VK_MAX_TOUCHED = 64 };

typedef struct vk_touched { /* bytes of a region used since the last barrier */
    int region;
    size_t begin, end;
    bool write;
} vk_touched;

/* The bytes that were used since the last barrier. */
typedef struct vk_touches {
    vk_touched at[VK_MAX_TOUCHED];
    int n;
} vk_touches;

/* The number of commands in a run of a plan. */
typedef struct vk_count {
    vk_touches touched;
    int64_t dispatches, barriers;
} vk_count;

struct vk_recording {
    VkCommandBuffer *part; /* parts that are submitted one after the other */
    size_t n_part, n_parts_made, cap_part;
    VkCommandBuffer commands; /* the last part */
    vk_cost cost, part_cost;
    double limit;              /* of a part's work when it was recorded */
    ggl_buffer *const *region; /* only while recording */
    uint64_t *id;              /* ids of the buffers it was recorded with, by region */
    int64_t n;                 /* the bucket; 0: nothing is recorded */
    ggl_buffer *sizes;         /* the word VK_BATCH_SIZE is in this buffer at size_at */
    size_t size_at;
    uint64_t number;        /* its last submission */
    uint64_t used;          /* time of its last use, by the plan's clock */
    VkDescriptorPool *pool; /* each has VK_POOL_SETS sets */
    size_t n_pool, cap_pool, pool_at;
    VkPipeline bound; /* the currently bound pipeline */
    vk_touches touched;
    vk_profile profile;
};

/* Makes room for the buffer ids of n_regions, if there is none yet. */
ggl_status ggl_vk_recording_open(vk_recording *r, int n_regions, ggl_error *err);
void ggl_vk_recording_close(vk_backend *b, vk_recording *r);
/* Clears the recording and begins it again. Its last submission must have finished. */
ggl_status ggl_vk_recording_begin(vk_backend *b, vk_recording *r, ggl_error *err);
/* Call before the dispatches of a step with this work: they begin another part if the last one
 * would be too long. */
ggl_status ggl_vk_recording_charge(vk_backend *b, vk_recording *r, vk_cost cost, ggl_error *err);
ggl_status ggl_vk_recording_add(vk_backend *b, vk_recording *r, const vk_call *c,
                                VkPipeline pipeline, ggl_error *err);
/* Returns whether a barrier is needed before the call, and remembers what the call touches. */
bool ggl_vk_needs_barrier(vk_touches *t, const vk_call *c);
ggl_status ggl_vk_recording_end(vk_backend *b, vk_recording *r, ggl_error *err);

#endif
