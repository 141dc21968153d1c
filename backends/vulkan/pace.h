/* How much work a submission may hold. Drivers reset a device that computes one submission for
 * some seconds, so recordings are cut into submissions of at most about 100 ms. Work is counted in
 * multiply-adds; other work counts as the multiply-adds that a slow device does meanwhile. The
 * limit is first that of a slow device, and grows when submissions are seen to end earlier. */
#ifndef VULKAN_PACE_H
#define VULKAN_PACE_H

#include "device.h"

typedef struct vk_cost {
    double most;  /* with attention over as many positions as a slot may have */
    double least; /* without attention */
} vk_cost;

/* Returns the work of a step for n tokens. */
vk_cost ggl_vk_cost_of(const ggl_step *step, int64_t n);

void ggl_vk_pace_open(vk_backend *b);
/* Returns the most work of one submission. */
double ggl_vk_pace_limit(const vk_backend *b);
/* Call after a submission with work `least` (of vk_cost), and when it is known to have ended. */
void ggl_vk_pace_submitted(vk_backend *b, uint64_t number, double least);
void ggl_vk_pace_ended(vk_backend *b, uint64_t number, uint64_t now);

#endif
