/* How long the steps of a recording take, by the device's clock. */
#ifndef VULKAN_PROFILE_H
#define VULKAN_PROFILE_H

#include "device.h"

typedef struct vk_profile { /* all zeros: nothing is measured */
    VkQueryPool pool;       /* a time before the first step and one behind each */
    uint32_t capacity, count;
    const ggl_tensor **node; /* by step */
    int64_t *n;              /* of the batch */
    uint64_t *time;
} vk_profile;

/* Whether the backend measures: somebody wants it, and the device has a clock. */
bool ggl_vk_profiles(const vk_backend *b);
/* Room for so many steps; what was there is lost. */
ggl_status ggl_vk_profile_open(vk_backend *b, vk_profile *p, size_t n_steps, ggl_error *err);
void ggl_vk_profile_close(vk_backend *b, vk_profile *p);
/* While recording: before the first step; behind each. */
void ggl_vk_profile_begin(vk_backend *b, vk_profile *p, VkCommandBuffer commands);
void ggl_vk_profile_step(vk_backend *b, vk_profile *p, VkCommandBuffer commands,
                         const ggl_tensor *node, int64_t n);
/* After a run, which has been waited for: tells of each step. */
ggl_status ggl_vk_profile_tell(vk_backend *b, const vk_profile *p, ggl_error *err);

#endif
