/* Loads Vulkan's library when a backend is opened, so that programs built with this backend
 * start on machines without Vulkan. All functions are called through a table. */
#ifndef VULKAN_LOADER_H
#define VULKAN_LOADER_H

#include "api.h"
#include "ggl/status.h"

typedef struct vk_functions {
    void *library;
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define FUNCTION(level, result, name, parameters) result(*name) parameters;
#include "functions.def"
#undef FUNCTION
} vk_functions;

/* Call in this order: each needs what the previous one loaded. GGL_UNSUPPORTED: the library or a
 * function is missing. */
ggl_status ggl_vk_load_library(vk_functions *f, ggl_error *err);
ggl_status ggl_vk_load_instance(vk_functions *f, VkInstance instance, ggl_error *err);
ggl_status ggl_vk_load_device(vk_functions *f, VkDevice device, ggl_error *err);
void ggl_vk_unload_library(vk_functions *f);

#endif
