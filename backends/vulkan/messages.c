/* Vulkan's error codes as messages, and messages of the validation layer. */
#include "messages.h"

#include <stdatomic.h>
#include <stdio.h>

static const struct {
    VkResult result;
    ggl_status status;
    const char *text;
} told[] = {
    {VK_ERROR_OUT_OF_HOST_MEMORY, GGL_NOMEM, "out of memory"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, GGL_NOMEM, "out of memory on the device"},
    {VK_ERROR_TOO_MANY_OBJECTS, GGL_NOMEM, "too many objects on the device"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, GGL_NOMEM, "out of memory for descriptors"},
    {VK_ERROR_FRAGMENTED_POOL, GGL_NOMEM, "out of memory for descriptors"},
    {VK_ERROR_DEVICE_LOST, GGL_DEVICE,
     "the device was lost: it was reset, or a shader ran too long; a smaller ubatch makes "
     "shorter work of a prompt"},
    {VK_ERROR_INITIALIZATION_FAILED, GGL_DEVICE, "the driver could not be started"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, GGL_UNSUPPORTED, "no compatible driver is installed"},
    {VK_ERROR_LAYER_NOT_PRESENT, GGL_UNSUPPORTED, "a layer is not installed"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, GGL_UNSUPPORTED, "the driver lacks an extension"},
    {VK_ERROR_FEATURE_NOT_PRESENT, GGL_UNSUPPORTED, "the driver lacks a feature"},
    {VK_TIMEOUT, GGL_DEVICE, "the device does not answer"},
};

ggl_status ggl_vk_fail(ggl_error *err, VkResult result, const char *what) {
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (told[i].result == result)
            return ggl_fail(err, told[i].status, "%s: %s", what, told[i].text);
    return ggl_fail(err, GGL_DEVICE, "%s: Vulkan error %d", what, (int)result);
}

static atomic_long n_messages;

long ggl_vulkan_messages(void) {
    return atomic_load(&n_messages);
}

static VkBool32 tell(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                     VkDebugUtilsMessageTypeFlagsEXT types,
                     const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    (void)severity;
    (void)types;
    (void)user;
    atomic_fetch_add(&n_messages, 1);
    fprintf(stderr, "vulkan: %s\n", data->pMessage ? data->pMessage : "");
    return VK_FALSE;
}

const VkDebugUtilsMessengerCreateInfoEXT ggl_vk_messenger = {
    .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
    .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
    .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                   VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
    .pfnUserCallback = tell,
};
