/* Times of a recording's steps, measured by the device. */
#ifndef VULKAN_PROFILE_H
#define VULKAN_PROFILE_H

#include "device.h"

typedef struct vk_profile { /* all zeros: nothing is measured */
    VkQueryPool pool;       /* a timestamp before the first step and one after each */
    uint32_t capacity, count;
    const ggl_tensor **node; /* by step */
    int64_t *n;              /* tokens of the step */
    uint64_t *time;
} vk_profile;

/* True if the backend measures: the caller wants it, and the device has timestamps. */
bool ggl_vk_profiles(const vk_backend *b);
/* Makes room for n_steps, discarding earlier times. */
ggl_status ggl_vk_profile_open(vk_backend *b, vk_profile *p, size_t n_steps, ggl_error *err);
void ggl_vk_profile_close(vk_backend *b, vk_profile *p);
/* Call while recording: before the first step, and after each step. */
void ggl_vk_profile_begin(vk_backend *b, vk_profile *p, VkCommandBuffer commands);
void ggl_vk_profile_step(vk_backend *b, vk_profile *p, VkCommandBuffer commands,
                         const ggl_tensor *node, int64_t n);
/* Call after a run has finished: reports the time of each step. */
ggl_status ggl_vk_profile_tell(vk_backend *b, const vk_profile *p, ggl_error *err);

#endif
