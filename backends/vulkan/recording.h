/* A recording: a plan's dispatches for one set of buffers and one size of the batch, in a command
 * buffer that is submitted again and again. */
#ifndef VULKAN_RECORDING_H
#define VULKAN_RECORDING_H

#include "memory.h"
#include "profile.h"

enum { VK_MAX_TOUCHED = 64 };

typedef struct vk_touched { /* bytes of a region, since the last barrier */
    int region;
    size_t begin, end;
    bool write;
} vk_touched;

struct vk_recording {
    VkCommandBuffer commands;
    ggl_buffer *const *region; /* while it is recorded */
    uint64_t *id;              /* of the buffers that it was recorded with, by region */
    int64_t n;                 /* of the batch; 0: nothing is recorded */
    uint64_t number;           /* of its last submission */
    uint64_t used;             /* when it was used last, by the plan's count */
    VkDescriptorPool *pool;    /* each of VK_POOL_SETS sets */
    size_t n_pool, cap_pool, pool_at;
    VkPipeline bound; /* the pipeline that is bound */
    vk_touched touched[VK_MAX_TOUCHED];
    int n_touched;
    vk_profile profile;
};

/* Room for the buffers' ids of so many regions. */
ggl_status ggl_vk_recording_open(vk_backend *b, vk_recording *r, int n_regions, ggl_error *err);
void ggl_vk_recording_close(vk_backend *b, vk_recording *r);
/* Empties it and begins it anew; whoever used it has been waited for. */
ggl_status ggl_vk_recording_begin(vk_backend *b, vk_recording *r, ggl_error *err);
ggl_status ggl_vk_recording_add(vk_backend *b, vk_recording *r, const vk_call *c,
                                VkPipeline pipeline, ggl_error *err);
ggl_status ggl_vk_recording_end(vk_backend *b, vk_recording *r, ggl_error *err);

#endif
