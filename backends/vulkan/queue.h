/* Command buffers: how they are recorded, submitted and waited for. */
#ifndef VULKAN_QUEUE_H
#define VULKAN_QUEUE_H

#include "device.h"

ggl_status ggl_vk_new_commands(vk_backend *b, VkCommandBuffer *out, ggl_error *err);
/* Begin and end a command buffer. Its commands run after everything submitted before, and what
 * they write is visible to everything after them, including the host. */
ggl_status ggl_vk_begin_commands(vk_backend *b, VkCommandBuffer commands, ggl_error *err);
ggl_status ggl_vk_end_commands(vk_backend *b, VkCommandBuffer commands, ggl_error *err);
/* Ends one that the next part continues. */
ggl_status ggl_vk_end_part(vk_backend *b, VkCommandBuffer commands, ggl_error *err);
/* Makes the transfers that follow wait for those before them. */
void ggl_vk_transfer_barrier(vk_backend *b, VkCommandBuffer commands);
/* Submits n > 0 command buffers, each by itself, so that the driver sees n short pieces of work;
 * `before` (NULL: none) is submitted together with the first. They run in order and have one number,
 * for ggl_vk_wait_for. */
ggl_status ggl_vk_submit(vk_backend *b, VkCommandBuffer before, const VkCommandBuffer *commands,
                         size_t n, uint64_t *number, ggl_error *err);
/* Returns and keeps why the backend cannot be used any more, unless something failed before. */
ggl_status ggl_vk_break(vk_backend *b, const ggl_error *why, ggl_error *err);
/* Waits for submission `number` and all before it, and reports the times of their steps; 0: returns
 * at once. */
ggl_status ggl_vk_wait_for(vk_backend *b, uint64_t number, ggl_error *err);

#endif
