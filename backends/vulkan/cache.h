/* The file that keeps compiled pipelines for the next start. It never makes anything fail. */
#ifndef VULKAN_CACHE_H
#define VULKAN_CACHE_H

#include <stddef.h>

#include "device.h"

/* Whether there is a folder for it. */
bool ggl_vk_cache_is_wanted(void);
/* What was kept, for ggl_free(); NULL: nothing, or nothing that is whole and of this driver. */
void *ggl_vk_cache_read(const vk_backend *b, size_t *size);
void ggl_vk_cache_write(const vk_backend *b, const void *data, size_t size);

#endif
