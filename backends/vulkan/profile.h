/* Times of a recording's steps, measured by the device. */
#ifndef VULKAN_PROFILE_H
#define VULKAN_PROFILE_H

#include "device.h"
#include "ggl/program.h"

typedef struct vk_timed_step {
    const ggl_step *step;
    int64_t first, n; /* tokens of the recording's bucket */
} vk_timed_step;

typedef struct vk_profile { /* all zeros: nothing is measured */
    VkQueryPool pool;       /* a timestamp before the first step and one after each */
    uint32_t capacity, count;
    vk_timed_step *step;
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
                         const ggl_step *step, int64_t first, int64_t n);
/* Call after a submission: its steps, for a batch of n, are reported when it is waited for. */
void ggl_vk_profile_submitted(vk_backend *b, vk_profile *p, uint64_t number, int64_t n);
/* Call when it is known, at the time `now`, that a submission has ended: reports its steps. */
ggl_status ggl_vk_profile_tell(vk_backend *b, const vk_submission *s, uint64_t now, ggl_error *err);

#endif
