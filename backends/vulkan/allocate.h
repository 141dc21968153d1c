/* Buffers and their memory: which kind of memory, and how it is taken. */
#ifndef VULKAN_ALLOCATE_H
#define VULKAN_ALLOCATE_H

#include "device.h"

struct ggl_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    char *mapped;         /* where it is mapped on the host; NULL: it is not */
    size_t size;          /* of the VkBuffer: a multiple of VK_BUFFER_ALIGN */
    size_t shift;         /* imported memory: bytes before the buffer's first byte */
    size_t memory_size;   /* bytes of `memory` */
    uint32_t memory_type; /* the device's number for the kind of memory */
    bool shared;          /* other devices can get a handle of it (share.h) */
    uint64_t id;          /* unique among all buffers of the backend, freed ones included */
    uint64_t last; /* the last submission with commands that use it; one that is recorded, but not
                      submitted yet, has the number after all others */
};

enum { VK_BUFFER_ALIGN = 256 };

/* A list of kinds of memory, best first; ends with ~0. */
typedef const VkMemoryPropertyFlags *vk_kinds;
/* both: device memory that is also the host's. shared_io: the same if the host reads it in every run:
 * memory that the host does not cache is read a hundred times more slowly. host: memory of transfers,
 * cached for the same reason. own: only the device accesses it. */
extern const VkMemoryPropertyFlags ggl_vk_memory_both[], ggl_vk_memory_shared_io[],
    ggl_vk_memory_host[], ggl_vk_memory_own[], ggl_vk_memory_any[];

/* The memory that a buffer gets. */
typedef struct vk_memory_wish {
    uint32_t allowed; /* bits of the types that may be taken */
    vk_kinds kinds;
    const void *more; /* a chain for the allocation; NULL: none */
    size_t size;      /* 0: what the buffer needs */
    bool map;         /* map it, if it can be */
} vk_memory_wish;

/* The parts of making a buffer: a VkBuffer of buf->size bytes, with a chain `more` for it; its memory,
 * VK_ERROR_FEATURE_NOT_PRESENT if there is no such kind; and the end of both. */
VkResult ggl_vk_buffer_create(vk_backend *b, ggl_buffer *buf, const void *more);
VkResult ggl_vk_buffer_bind(vk_backend *b, ggl_buffer *buf, const vk_memory_wish *wish);
void ggl_vk_buffer_release(vk_backend *b, ggl_buffer *buf);

#endif
