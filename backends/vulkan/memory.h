/* Buffers of regions, and transfers. */
#ifndef VULKAN_MEMORY_H
#define VULKAN_MEMORY_H

#include "allocate.h"
#include "queue.h"

ggl_status ggl_vk_buffer_alloc(ggl_backend *b, int region, size_t size, const void *host,
                               ggl_buffer **out, ggl_error *err);
void ggl_vk_buffer_free(ggl_backend *b, ggl_buffer *buf);
ggl_status ggl_vk_buffer_upload(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                                size_t size, ggl_error *err);
ggl_status ggl_vk_buffer_download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                                  size_t size, ggl_error *err);
ggl_status ggl_vk_buffer_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                              const ggl_copy_range *range, size_t n, ggl_error *err);
ggl_status ggl_vk_buffer_clear(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                               ggl_error *err);

/* Submits the transfers that are recorded so far and, after them, the n parts of a run (0: none).
 * *number (may be NULL) is for ggl_vk_wait_for; 0: nothing was submitted. */
ggl_status ggl_vk_submit_run(vk_backend *b, const VkCommandBuffer *part, size_t n, uint64_t *number,
                             ggl_error *err);
/* Submits recorded transfers, and waits for everything submitted. */
ggl_status ggl_vk_wait_all(vk_backend *b, ggl_error *err);

void ggl_vk_staging_free(vk_backend *b);

#endif
