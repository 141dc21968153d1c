#include "share.h"

#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"

/* Makes a VkBuffer with memory that is for it alone, as drivers may demand for handles. */
static VkResult make(vk_backend *b, ggl_buffer *buf, uint32_t kind, const vk_memory_wish *wish) {
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kind};
    VkResult r = ggl_vk_buffer_create(b, buf, &external);
    const VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
        .pNext = wish->more,
        .buffer = buf->buffer};
    vk_memory_wish own = *wish;
    own.more = &dedicated;
    return r == VK_SUCCESS ? ggl_vk_buffer_bind(b, buf, &own) : r;
}

bool ggl_vk_make_shared(vk_backend *b, ggl_buffer *buf, const vk_memory_wish *wish) {
    const ggl_buffer before = *buf;
    const VkExportMemoryAllocateInfo exported = {.sType =
                                                     VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                                 .handleTypes = b->limits.shared_kind};
    vk_memory_wish more = *wish;
    more.more = &exported;
    if (!b->limits.shared_kind || !b->f.GetMemoryFdKHR)
        return false;
    buf->shared = make(b, buf, b->limits.shared_kind, &more) == VK_SUCCESS;
    if (buf->shared)
        return true;
    ggl_vk_buffer_release(b, buf);
    *buf = before;
    return false;
}

static void owner_of(const vk_backend *b, unsigned char owner[2 * VK_UUID_SIZE]) {
    memcpy(owner, b->device->id.deviceUUID, VK_UUID_SIZE);
    memcpy(owner + VK_UUID_SIZE, b->device->id.driverUUID, VK_UUID_SIZE);
}

ggl_status ggl_vk_share(ggl_backend *base, const ggl_buffer *buf, ggl_shared *out, ggl_error *err) {
    const vk_backend *b = (const vk_backend *)base;
    const VkMemoryGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
        .memory = buf->memory,
        .handleType = (VkExternalMemoryHandleTypeFlagBits)b->limits.shared_kind};
    *out = (ggl_shared){.fd = -1,
                        .kind = b->limits.shared_kind,
                        .memory_type = buf->memory_type,
                        .size = buf->size,
                        .memory_size = buf->memory_size};
    owner_of(b, out->owner);
    if (!buf->shared || b->f.GetMemoryFdKHR(b->device->device, &info, &out->fd) != VK_SUCCESS)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s makes no handle of this memory", b->base.name);
    return GGL_OK;
}

/* Returns the device's memory types that can hold the shared memory; 0 if none. */
static uint32_t types_of(const vk_backend *b, const ggl_shared *from) {
    const VkExternalMemoryHandleTypeFlagBits kind = (VkExternalMemoryHandleTypeFlagBits)from->kind;
    VkMemoryFdPropertiesKHR p = {.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
    unsigned char owner[2 * VK_UUID_SIZE];
    owner_of(b, owner);
    if (from->kind != b->limits.shared_kind)
        return 0;
    if (kind == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT)
        return memcmp(owner, from->owner, sizeof owner) == 0 ? UINT32_C(1) << from->memory_type : 0;
    return b->f.GetMemoryFdPropertiesKHR && b->f.GetMemoryFdPropertiesKHR(
                                                b->device->device, kind, from->fd, &p) == VK_SUCCESS
               ? p.memoryTypeBits
               : 0;
}

ggl_status ggl_vk_borrow(ggl_backend *base, const ggl_shared *from, ggl_buffer **out,
                         ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    const VkImportMemoryFdInfoKHR fd = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                        .handleType =
                                            (VkExternalMemoryHandleTypeFlagBits)from->kind,
                                        .fd = from->fd};
    const vk_memory_wish wish = {.allowed = types_of(b, from),
                                 .kinds = ggl_vk_memory_any,
                                 .more = &fd,
                                 .size = from->memory_size};
    ggl_buffer *buf = wish.allowed ? ggl_calloc(1, sizeof *buf) : NULL;
    VkResult r = VK_ERROR_FEATURE_NOT_PRESENT;
    if (buf) {
        *buf = (ggl_buffer){.size = from->size, .id = ++b->device->n_buffers};
        r = make(b, buf, from->kind, &wish);
    }
    if (buf && r == VK_SUCCESS) {
        *out = buf;
        return GGL_OK;
    }
    if (!buf || !buf->memory) /* otherwise the driver has it, and closes it with the memory */
        ggl_os_close(from->fd);
    if (buf)
        ggl_vk_buffer_release(b, buf);
    ggl_free(buf);
    return ggl_fail(err, GGL_UNSUPPORTED, "%s cannot reach this memory (%d)", b->base.name, (int)r);
}
