/* Buffers and transfers. Data is copied through a mapping if the host can access the memory,
 * else through a ring of staging pieces: one is filled while the previous one is copied. */
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ggl/alloc.h"

/* --- kinds of memory -------------------------------------------------------------------------- */

enum {
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    SEEN = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT
};

/* A list of kinds of memory, best first; ends with ~0. */
typedef const VkMemoryPropertyFlags *wishes;

/* both: device memory that is also the host's. host: memory that the host accesses in every run;
 * on a device with its own memory, shaders access the host's, because the host reads device
 * memory very slowly. own: only the device accesses it. */
static const VkMemoryPropertyFlags both[] = {LOCAL | SEEN | CACHED, LOCAL | SEEN, SEEN | CACHED,
                                             SEEN, ~0u};
static const VkMemoryPropertyFlags host[] = {SEEN | CACHED, SEEN, ~0u};
static const VkMemoryPropertyFlags own[] = {LOCAL, 0, ~0u};

static bool find_kind(const vk_backend *b, uint32_t allowed, wishes w, uint32_t *kind) {
    const VkPhysicalDeviceMemoryProperties *m = &b->device->memory;
    for (; *w != ~0u; w++)
        for (uint32_t i = 0; i < m->memoryTypeCount; i++)
            if ((allowed & 1u << i) && (m->memoryTypes[i].propertyFlags & *w) == *w) {
                *kind = i;
                return true;
            }
    return false;
}

/* --- allocation ------------------------------------------------------------------------------- */

static ggl_status does_not_fit(const vk_backend *b, size_t size, ggl_error *err) {
    size_t all, left;
    ggl_vk_memory_left(b, &all, &left);
    return ggl_fail(
        err, GGL_NOMEM, "%s: %.1f MiB more do not fit on the device (%.1f of %.1f MiB are free)",
        b->base.name, (double)size / 1048576, (double)left / 1048576, (double)all / 1048576);
}

static ggl_status failed(const vk_backend *b, VkResult r, size_t size, ggl_error *err) {
    bool full = r == VK_ERROR_OUT_OF_DEVICE_MEMORY || r == VK_ERROR_OUT_OF_HOST_MEMORY;
    return full ? does_not_fit(b, size, err) : ggl_vk_fail(err, r, b->base.name);
}

static VkResult create_buffer(vk_backend *b, ggl_buffer *buf, const void *more) {
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = more,
                                     .size = buf->size,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                                     .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
    return b->f.CreateBuffer(b->device->device, &info, NULL, &buf->buffer);
}

/* Allocates memory of one of the kinds for the whole buffer, and maps it if `map` and possible. */
static VkResult take_memory(vk_backend *b, ggl_buffer *buf, uint32_t allowed, wishes w,
                            const void *more, bool map) {
    VkDevice d = b->device->device;
    VkMemoryRequirements need;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = more};
    b->f.GetBufferMemoryRequirements(d, buf->buffer, &need);
    if (!find_kind(b, need.memoryTypeBits & allowed, w, &info.memoryTypeIndex))
        return VK_ERROR_FEATURE_NOT_PRESENT;
    info.allocationSize = more ? buf->size : need.size;
    VkResult r = b->f.AllocateMemory(d, &info, NULL, &buf->memory);
    if (r == VK_SUCCESS)
        r = b->f.BindBufferMemory(d, buf->buffer, buf->memory, 0);
    VkMemoryPropertyFlags kind = b->device->memory.memoryTypes[info.memoryTypeIndex].propertyFlags;
    void *at = NULL;
    if (r == VK_SUCCESS && map && (kind & SEEN) == SEEN)
        r = b->f.MapMemory(d, buf->memory, 0, VK_WHOLE_SIZE, 0, &at);
    buf->mapped = at;
    return r;
}

static void release(vk_backend *b, ggl_buffer *buf) {
    VkDevice d = b->device->device;
    if (buf->buffer)
        b->f.DestroyBuffer(d, buf->buffer, NULL);
    if (buf->memory)
        b->f.FreeMemory(d, buf->memory, NULL);
}

/* Makes a buffer of mapped host memory. */
static ggl_status take_staging(vk_backend *b, ggl_buffer *buf, size_t size, ggl_error *err) {
    buf->size = size;
    VkResult r = create_buffer(b, buf, NULL);
    if (r == VK_SUCCESS)
        r = take_memory(b, buf, ~0u, host, NULL, true);
    return r == VK_SUCCESS ? GGL_OK : failed(b, r, size, err);
}

/* Makes a zeroed buffer for a region. */
static ggl_status take(vk_backend *b, ggl_buffer *buf, int region, size_t size, ggl_error *err) {
    if (!ggl_size_align(size > 0 ? size : 1, VK_BUFFER_ALIGN, &buf->size) ||
        (b->base.max_buffer && buf->size > b->base.max_buffer))
        return ggl_fail(err, GGL_LIMIT, "%s: a buffer of %.1f MiB; at most %.1f MiB are allowed",
                        b->base.name, (double)size / 1048576, (double)b->base.max_buffer / 1048576);
    bool shared = ggl_vk_shares_memory(b), io = region == GGL_REGION_IO;
    VkResult r = create_buffer(b, buf, NULL);
    if (r == VK_SUCCESS)
        r = take_memory(b, buf, ~0u,
                        shared ? both
                        : io   ? host
                               : own,
                        NULL, io || (shared && b->features.map));
    if (r != VK_SUCCESS)
        return failed(b, r, size, err);
    return ggl_vk_buffer_clear(&b->base, buf, 0, buf->size, err);
}

/* Imports host memory in place. Only whole pages can be imported: the rest of the first and last
 * page exists too, but maybe nothing outside of them. */
static ggl_status import(vk_backend *b, ggl_buffer *buf, size_t size, const void *at,
                         ggl_error *err) {
    const size_t align = b->limits.import_align, page = (size_t)sysconf(_SC_PAGESIZE);
    const VkExternalMemoryHandleTypeFlagBits kind =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    if (!b->features.import || align == 0 || !b->f.GetMemoryHostPointerPropertiesEXT)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s uses no memory of the host", b->base.name);
    buf->shift = (uintptr_t)at % align;
    char *first = (char *)(uintptr_t)at - buf->shift;
    if (!ggl_size_align(buf->shift + size, align, &buf->size) || size == 0 ||
        (b->base.max_buffer && buf->size > b->base.max_buffer) ||
        (align > page && buf->size != size))
        return ggl_fail(err, GGL_UNSUPPORTED, "%s cannot use this memory of the host",
                        b->base.name);
    VkMemoryHostPointerPropertiesEXT p = {.sType =
                                              VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kind};
    const VkImportMemoryHostPointerInfoEXT pointer = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = kind,
        .pHostPointer = first};
    static const VkMemoryPropertyFlags any[] = {0, ~0u};
    VkResult r = b->f.GetMemoryHostPointerPropertiesEXT(b->device->device, kind, first, &p);
    if (r == VK_SUCCESS)
        r = create_buffer(b, buf, &external);
    if (r == VK_SUCCESS)
        r = take_memory(b, buf, p.memoryTypeBits, any, &pointer, false);
    return r == VK_SUCCESS
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED, "%s cannot use this memory of the host (%d)",
                          b->base.name, (int)r);
}

ggl_status ggl_vk_buffer_alloc(ggl_backend *base, int region, size_t size, const void *at,
                               ggl_buffer **out, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    ggl_buffer *buf = ggl_calloc(1, sizeof *buf);
    if (!buf)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a buffer");
    buf->id = ++b->device->n_buffers;
    ggl_status st = at ? import(b, buf, size, at, err) : take(b, buf, region, size, err);
    if (st != GGL_OK) {
        release(b, buf);
        ggl_free(buf);
        return st;
    }
    *out = buf;
    return GGL_OK;
}

void ggl_vk_buffer_free(ggl_backend *base, ggl_buffer *buf) {
    vk_backend *b = (vk_backend *)base;
    if (!buf)
        return;
    b->f.DeviceWaitIdle(b->device->device);
    release(b, buf);
    ggl_free(buf);
}

/* --- staging ---------------------------------------------------------------------------------- */

enum { N_PIECE = 2, PIECE_SIZE = 8 << 20 };

typedef struct piece {
    ggl_buffer buffer;
    VkCommandBuffer commands;
    uint64_t number; /* number of the last submission that uses it */
} piece;

struct vk_staging {
    piece piece[N_PIECE];
    int next;
};

/* Waits for the next piece to become unused and begins its commands. */
static ggl_status begin(vk_backend *b, piece **out, ggl_error *err) {
    if (!b->staging && !(b->staging = ggl_calloc(1, sizeof *b->staging)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for transfers");
    piece *p = *out = &b->staging->piece[b->staging->next];
    b->staging->next = (b->staging->next + 1) % N_PIECE;
    ggl_status st = ggl_vk_wait_for(b, p->number, err);
    if (st == GGL_OK && !p->commands)
        st = ggl_vk_new_commands(b, &p->commands, err);
    if (st == GGL_OK && !p->buffer.mapped)
        st = take_staging(b, &p->buffer, PIECE_SIZE, err);
    return st == GGL_OK ? ggl_vk_begin_commands(b, p->commands, err) : st;
}

static ggl_status submit(vk_backend *b, piece *p, ggl_error *err) {
    ggl_status st = ggl_vk_end_commands(b, p->commands, err);
    return st == GGL_OK ? ggl_vk_submit(b, p->commands, &p->number, err) : st;
}

static void copy_commands(vk_backend *b, const piece *p, const ggl_buffer *dst, size_t to,
                          const ggl_buffer *src, size_t from, size_t size) {
    const VkBufferCopy range = {
        .srcOffset = src->shift + from, .dstOffset = dst->shift + to, .size = size};
    b->f.CmdCopyBuffer(p->commands, src->buffer, dst->buffer, 1, &range);
}

static size_t piece_of(size_t left) {
    return left < PIECE_SIZE ? left : PIECE_SIZE;
}

/* Copies host data to a buffer through staging pieces. src NULL: zeros. */
static ggl_status stage_in(vk_backend *b, ggl_buffer *dst, size_t offset, const char *src,
                           size_t size, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t done = 0, n; done < size && st == GGL_OK; done += n) {
        piece *p;
        n = piece_of(size - done);
        st = begin(b, &p, err);
        if (st != GGL_OK)
            break;
        if (src)
            memcpy(p->buffer.mapped, src + done, n);
        else
            memset(p->buffer.mapped, 0, n);
        copy_commands(b, p, dst, offset + done, &p->buffer, 0, n);
        st = submit(b, p, err);
    }
    return st;
}

/* Copies a buffer to the host. Two pieces are in flight: the device writes one while the host
 * reads the other. */
static ggl_status stage_out(vk_backend *b, const ggl_buffer *src, size_t offset, char *dst,
                            size_t size, ggl_error *err) {
    piece *before = NULL;
    size_t n_before = 0;
    ggl_status st = GGL_OK;
    for (size_t done = 0, n; (done < size || before) && st == GGL_OK; done += n) {
        piece *p = NULL;
        n = piece_of(size - done);
        if (n > 0)
            st = begin(b, &p, err);
        if (p && st == GGL_OK) {
            copy_commands(b, p, &p->buffer, 0, src, offset + done, n);
            st = submit(b, p, err);
        }
        if (before && st == GGL_OK)
            st = ggl_vk_wait_for(b, before->number, err);
        if (before && st == GGL_OK)
            memcpy(dst + done - n_before, before->buffer.mapped, n_before);
        before = p;
        n_before = n;
    }
    return st;
}

void ggl_vk_staging_free(vk_backend *b) {
    for (int i = 0; b->staging && i < N_PIECE; i++)
        release(b, &b->staging->piece[i].buffer); /* command buffers are freed with their pool */
    ggl_free(b->staging);
    b->staging = NULL;
}

/* --- the backend's functions ------------------------------------------------------------------ */

static ggl_status wait_all(vk_backend *b, ggl_error *err) {
    return ggl_vk_wait_for(b, b->device->submitted, err);
}

ggl_status ggl_vk_buffer_upload(ggl_backend *base, ggl_buffer *dst, size_t offset, const void *src,
                                size_t size, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    if (!dst->mapped)
        return stage_in(b, dst, offset, src, size, err);
    ggl_status st = wait_all(b, err);
    if (st == GGL_OK)
        memcpy(dst->mapped + offset, src, size);
    return st;
}

ggl_status ggl_vk_buffer_download(ggl_backend *base, const ggl_buffer *src, size_t offset,
                                  void *dst, size_t size, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    if (!src->mapped)
        return stage_out(b, src, offset, dst, size, err);
    ggl_status st = wait_all(b, err);
    if (st == GGL_OK)
        memcpy(dst, src->mapped + offset, size);
    return st;
}

ggl_status ggl_vk_buffer_copy(ggl_backend *base, ggl_buffer *dst, size_t dst_offset,
                              const ggl_buffer *src, size_t src_offset, size_t size,
                              ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    if (src->mapped) { /* runs in flight may still write src */
        ggl_status st = wait_all(b, err);
        return st == GGL_OK ? ggl_vk_buffer_upload(base, dst, dst_offset, src->mapped + src_offset,
                                                   size, err)
                            : st;
    }
    if (dst->mapped)
        return stage_out(b, src, src_offset, dst->mapped + dst_offset, size, err);
    piece *p;
    ggl_status st = size > 0 ? begin(b, &p, err) : GGL_OK;
    if (st != GGL_OK || size == 0)
        return st;
    copy_commands(b, p, dst, dst_offset, src, src_offset, size);
    return submit(b, p, err);
}

ggl_status ggl_vk_buffer_clear(ggl_backend *base, ggl_buffer *buf, size_t offset, size_t size,
                               ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    ggl_status st = buf->mapped ? wait_all(b, err) : GGL_OK;
    if (st != GGL_OK || size == 0)
        return st;
    if (buf->mapped) {
        memset(buf->mapped + offset, 0, size);
        return GGL_OK;
    }
    if (offset % 4 != 0 || size % 4 != 0) /* vkCmdFillBuffer needs multiples of 4 */
        return stage_in(b, buf, offset, NULL, size, err);
    piece *p;
    st = begin(b, &p, err);
    if (st != GGL_OK)
        return st;
    b->f.CmdFillBuffer(p->commands, buf->buffer, buf->shift + offset, size, 0);
    return submit(b, p, err);
}
