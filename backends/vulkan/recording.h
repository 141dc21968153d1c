/* A recording: a plan's dispatches for one set of buffers and one batch size, in a command
 * buffer that is submitted repeatedly. */
#ifndef VULKAN_RECORDING_H
#define VULKAN_RECORDING_H

#include "memory.h"
#include "profile.h"

enum { VK_MAX_TOUCHED = 64 };

typedef struct vk_touched { /* bytes of a region used since the last barrier */
    int region;
    size_t begin, end;
    bool write;
} vk_touched;

struct vk_recording {
    VkCommandBuffer commands;
    ggl_buffer *const *region; /* only while recording */
    uint64_t *id;              /* ids of the buffers it was recorded with, by region */
    int64_t n;                 /* tokens of the batch; 0: nothing is recorded */
    uint64_t number;           /* its last submission */
    uint64_t used;             /* time of its last use, by the plan's clock */
    VkDescriptorPool *pool;    /* each has VK_POOL_SETS sets */
    size_t n_pool, cap_pool, pool_at;
    VkPipeline bound; /* the currently bound pipeline */
    vk_touched touched[VK_MAX_TOUCHED];
    int n_touched;
    vk_profile profile;
};

/* Makes room for the buffer ids of n_regions. */
ggl_status ggl_vk_recording_open(vk_backend *b, vk_recording *r, int n_regions, ggl_error *err);
void ggl_vk_recording_close(vk_backend *b, vk_recording *r);
/* Clears the recording and begins it again. Its last submission must have finished. */
ggl_status ggl_vk_recording_begin(vk_backend *b, vk_recording *r, ggl_error *err);
ggl_status ggl_vk_recording_add(vk_backend *b, vk_recording *r, const vk_call *c,
                                VkPipeline pipeline, ggl_error *err);
ggl_status ggl_vk_recording_end(vk_backend *b, vk_recording *r, ggl_error *err);

#endif
