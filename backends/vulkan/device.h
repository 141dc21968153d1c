/* The device and its queue. */
#ifndef VULKAN_DEVICE_H
#define VULKAN_DEVICE_H

#include "messages.h"
#include "vulkan.h"

enum { VK_IN_FLIGHT = 8 }; /* maximal number of submissions in flight */

struct vk_profile; /* profile.h */

/* A submission that was not waited for yet. */
typedef struct vk_submission {
    uint64_t begin;             /* when it was submitted, by ggl_os_clock */
    double least;               /* its work (pace.h) */
    struct vk_profile *profile; /* has times to report; NULL: none */
    int64_t n;                  /* tokens of its batch */
} vk_submission;

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
    /* Why a submission failed, or the device was lost. Transfers may be missing then, so everything
     * that is submitted or waited for fails from then on. GGL_OK: nothing has failed. */
    ggl_error broken;
    vk_submission submission[VK_IN_FLIGHT]; /* by number, as fences */
    double limit;                           /* most work of a submission (pace.h) */
    uint64_t n_buffers;                     /* created so far */
    /* The device's clock: its last timestamp; the time since the first one in ns, and what to add
     * to it for the host's time; and the end of the last reported step in the host's time. */
    uint64_t tick, last;
    double ns, offset;
    bool has_tick;
};

/* Creates the instance; closes it, also one that is partly made. */
ggl_status ggl_vk_instance_open(vk_backend *b, ggl_error *err);
void ggl_vk_instance_close(vk_backend *b);
/* Sets the physical device of that number, and the family of its queue. */
ggl_status ggl_vk_choose_device(vk_backend *b, int number, ggl_error *err);

ggl_status ggl_vk_device_open(vk_backend *b, const ggl_backend_params *params, ggl_error *err);
void ggl_vk_device_close(vk_backend *b);

/* True if the device uses the host's memory. */
bool ggl_vk_shares_memory(const vk_backend *b);
/* Returns the bytes of the device's own memory, in total and free; without the feature `budget`
 * all counts as free. */
void ggl_vk_memory_left(const vk_backend *b, size_t *size, size_t *left);

#endif
