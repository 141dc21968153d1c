#include "allocate.h"

/* --- kinds of memory -------------------------------------------------------------------------- */

enum {
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    SEEN = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    /* AMD's memory that no cache holds: only for devices opened with deviceCoherentMemory */
    FORBIDDEN = VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD
};

const VkMemoryPropertyFlags ggl_vk_memory_both[] = {LOCAL | SEEN | CACHED, LOCAL | SEEN,
                                                    SEEN | CACHED, SEEN, ~0u};
const VkMemoryPropertyFlags ggl_vk_memory_shared_io[] = {LOCAL | SEEN | CACHED, SEEN | CACHED,
                                                         LOCAL | SEEN, SEEN, ~0u};
const VkMemoryPropertyFlags ggl_vk_memory_host[] = {SEEN | CACHED, SEEN, ~0u};
const VkMemoryPropertyFlags ggl_vk_memory_own[] = {LOCAL, 0, ~0u};
const VkMemoryPropertyFlags ggl_vk_memory_any[] = {0, ~0u};

/* --- buffers ---------------------------------------------------------------------------------- */

VkResult ggl_vk_buffer_create(vk_backend *b, ggl_buffer *buf, const void *more) {
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = more,
                                     .size = buf->size,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                                     .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
    return b->f.CreateBuffer(b->device->device, &info, NULL, &buf->buffer);
}

/* True if kinds[] has wishes that memory of these properties satisfies, before wish w. */
static bool is_tried(VkMemoryPropertyFlags properties, vk_kinds kinds, vk_kinds w) {
    for (; kinds < w; kinds++)
        if ((properties & *kinds) == *kinds)
            return true;
    return false;
}

/* Allocates `size` bytes of the first of the allowed kinds that has room, in the order of the wishes.
 * VK_ERROR_FEATURE_NOT_PRESENT: there is no such kind. */
static VkResult allocate(vk_backend *b, uint32_t allowed, vk_kinds kinds,
                         VkMemoryAllocateInfo *info, VkDeviceMemory *out) {
    const VkPhysicalDeviceMemoryProperties *m = &b->device->memory;
    VkResult r = VK_ERROR_FEATURE_NOT_PRESENT;
    for (vk_kinds w = kinds; *w != ~0u; w++)
        for (uint32_t i = 0; i < m->memoryTypeCount; i++) {
            const VkMemoryPropertyFlags of = m->memoryTypes[i].propertyFlags;
            if (!(allowed & UINT32_C(1) << i) || (of & FORBIDDEN) || (of & *w) != *w ||
                is_tried(of, kinds, w))
                continue;
            info->memoryTypeIndex = i;
            r = b->f.AllocateMemory(b->device->device, info, NULL, out);
            if (r != VK_ERROR_OUT_OF_DEVICE_MEMORY)
                return r;
        }
    return r;
}

VkResult ggl_vk_buffer_bind(vk_backend *b, ggl_buffer *buf, const vk_memory_wish *wish) {
    VkDevice d = b->device->device;
    VkMemoryRequirements need;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = wish->more};
    b->f.GetBufferMemoryRequirements(d, buf->buffer, &need);
    info.allocationSize = wish->size > 0 ? wish->size : need.size;
    VkResult r = allocate(b, need.memoryTypeBits & wish->allowed, wish->kinds, &info, &buf->memory);
    if (r == VK_SUCCESS)
        r = b->f.BindBufferMemory(d, buf->buffer, buf->memory, 0);
    if (r != VK_SUCCESS)
        return r;
    buf->memory_size = (size_t)info.allocationSize;
    buf->memory_type = info.memoryTypeIndex;
    VkMemoryPropertyFlags kind = b->device->memory.memoryTypes[buf->memory_type].propertyFlags;
    void *at = NULL;
    if (wish->map && (kind & SEEN) == SEEN)
        r = b->f.MapMemory(d, buf->memory, 0, VK_WHOLE_SIZE, 0, &at);
    buf->mapped = at;
    return r;
}

void ggl_vk_buffer_release(vk_backend *b, ggl_buffer *buf) {
    VkDevice d = b->device->device;
    if (buf->buffer)
        b->f.DestroyBuffer(d, buf->buffer, NULL);
    if (buf->memory)
        b->f.FreeMemory(d, buf->memory, NULL);
}
