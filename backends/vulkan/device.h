/* The device and its queue. */
#ifndef VULKAN_DEVICE_H
#define VULKAN_DEVICE_H

#include "messages.h"
#include "vulkan.h"

enum { VK_IN_FLIGHT = 8 }; /* maximal number of submissions in flight */

struct vk_device {
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical;
    VkPhysicalDeviceType type;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    VkDevice device;
    uint32_t family;
    uint32_t clock_bits; /* valid bits of the queue's timestamps; 0: it has none */
    VkQueue queue;
    VkCommandPool commands;
    VkFence fence[VK_IN_FLIGHT]; /* submission s uses fence s % VK_IN_FLIGHT */
    uint64_t submitted, done;    /* submissions are numbered 1, 2, .. and finish in this order */
    uint64_t n_buffers;          /* created so far */
};

ggl_status ggl_vk_device_open(vk_backend *b, const ggl_backend_params *params, ggl_error *err);
void ggl_vk_device_close(vk_backend *b);

/* True if the device uses the host's memory. */
bool ggl_vk_shares_memory(const vk_backend *b);
/* Returns the bytes of the device's own memory, in total and free; without the feature `budget`
 * all counts as free. */
void ggl_vk_memory_left(const vk_backend *b, size_t *size, size_t *left);

ggl_status ggl_vk_new_commands(vk_backend *b, VkCommandBuffer *out, ggl_error *err);
/* Begin and end a command buffer. Its commands run after everything submitted before, and what
 * they write is visible to everything after them, including the host. */
ggl_status ggl_vk_begin_commands(vk_backend *b, VkCommandBuffer commands, ggl_error *err);
ggl_status ggl_vk_end_commands(vk_backend *b, VkCommandBuffer commands, ggl_error *err);
/* Submits a command buffer; *number is for ggl_vk_wait_for. */
ggl_status ggl_vk_submit(vk_backend *b, VkCommandBuffer commands, uint64_t *number, ggl_error *err);
/* Waits for submission `number` and all before it; 0: returns at once. */
ggl_status ggl_vk_wait_for(vk_backend *b, uint64_t number, ggl_error *err);

#endif
