/* Counts the dispatches that a Vulkan backend records. */
#ifndef VULKAN_DISPATCHES_H
#define VULKAN_DISPATCHES_H

#include "vulkan.h"

static void (*real_dispatch)(VkCommandBuffer, uint32_t, uint32_t, uint32_t);
static int n_dispatches;

static void dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    n_dispatches++;
    real_dispatch(commands, x, y, z);
}

/* From now on n_dispatches counts those of b, too. Returns b. */
static vk_backend *count_dispatches(ggl_backend *b) {
    vk_backend *v = (vk_backend *)b;
    real_dispatch = v->f.CmdDispatch;
    v->f.CmdDispatch = dispatch;
    return v;
}

#endif
