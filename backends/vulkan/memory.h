/* Buffers. */
#ifndef VULKAN_MEMORY_H
#define VULKAN_MEMORY_H

#include "queue.h"

struct ggl_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    char *mapped;  /* where it is mapped on the host; NULL: it is not */
    size_t size;   /* of the VkBuffer: a multiple of VK_BUFFER_ALIGN */
    size_t shift;  /* imported memory: bytes before the buffer's first byte */
    uint64_t id;   /* unique among all buffers of the backend, freed ones included */
    uint64_t last; /* the last submission with commands that use it; one that is recorded, but not
                      submitted yet, has the number after all others */
};

enum { VK_BUFFER_ALIGN = 256 };

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
