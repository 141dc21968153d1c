/* What Vulkan says, for people. */
#ifndef VULKAN_MESSAGES_H
#define VULKAN_MESSAGES_H

#include "loader.h"

/* Fails with a sentence about a result of Vulkan: "<what>: the device was lost ..". */
ggl_status ggl_vk_fail(ggl_error *err, VkResult result, const char *what);

/* Prints warnings and errors of the validation layer, and counts them. */
extern const VkDebugUtilsMessengerCreateInfoEXT ggl_vk_messenger;
/* So many there were in this process. */
long ggl_vulkan_messages(void);

#endif
