/* The device, its queue, and what waits in it. */
#ifndef VULKAN_DEVICE_H
#define VULKAN_DEVICE_H

#include "messages.h"
#include "vulkan.h"

enum { VK_IN_FLIGHT = 8 }; /* submissions that may be under way */

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
    uint32_t clock_bits; /* of the time that the queue can tell; 0: it cannot */
    VkQueue queue;
    VkCommandPool commands;
    VkFence fence[VK_IN_FLIGHT]; /* submission s has fence s % VK_IN_FLIGHT */
    uint64_t submitted, done;    /* submissions are numbered 1, 2, .. and end in this order */
    uint64_t n_buffers;          /* made so far */
};

ggl_status ggl_vk_device_open(vk_backend *b, const ggl_backend_params *params, ggl_error *err);
void ggl_vk_device_close(vk_backend *b);

/* Whether the device's memory is the host's. */
bool ggl_vk_shares_memory(const vk_backend *b);
/* Bytes of the device's own memory: in all, and free as far as the driver tells. */
void ggl_vk_memory_left(const vk_backend *b, size_t *size, size_t *left);

ggl_status ggl_vk_new_commands(vk_backend *b, VkCommandBuffer *out, ggl_error *err);
/* Begins and ends commands. What was submitted before comes before them, and what they write can be
 * seen by all that comes after them, the host included. */
ggl_status ggl_vk_begin_commands(vk_backend *b, VkCommandBuffer commands, ggl_error *err);
ggl_status ggl_vk_end_commands(vk_backend *b, VkCommandBuffer commands, ggl_error *err);
/* Hands them over; *number is for ggl_vk_wait_for. */
ggl_status ggl_vk_submit(vk_backend *b, VkCommandBuffer commands, uint64_t *number, ggl_error *err);
/* Waits for the submission of that number and all before it; 0: for none. */
ggl_status ggl_vk_wait_for(vk_backend *b, uint64_t number, ggl_error *err);

#endif
