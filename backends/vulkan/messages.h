/* Messages about Vulkan. */
#ifndef VULKAN_MESSAGES_H
#define VULKAN_MESSAGES_H

#include "loader.h"

/* Fails with a message about a Vulkan result: "WHAT: the device was lost ..". */
ggl_status ggl_vk_fail(ggl_error *err, VkResult result, const char *what);

/* Prints and counts warnings and errors of the validation layer. */
extern const VkDebugUtilsMessengerCreateInfoEXT ggl_vk_messenger;
/* Returns the number of these messages in this process. */
long ggl_vulkan_messages(void);

#endif
