/* The file that caches compiled pipelines for the next start. Its errors are ignored. */
#ifndef VULKAN_PIPELINE_CACHE_H
#define VULKAN_PIPELINE_CACHE_H

#include <stddef.h>

#include "device.h"

/* True if there is a folder for the cache. */
bool ggl_vk_cache_is_wanted(void);
/* Returns the cached data, to be freed with ggl_free; NULL: none, damaged, or not of this
 * driver. */
void *ggl_vk_cache_read(const vk_backend *b, size_t *size);
void ggl_vk_cache_write(const vk_backend *b, const void *data, size_t size);

#endif
