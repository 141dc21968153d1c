/* Buffers and transfers. If the host can access the memory, data is copied through a mapping, and
 * waits only for commands that use this buffer; else through a ring of staging pieces, in the order of
 * the device's runs. */
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "share.h"
#include "ggl/internal/os_process.h"

/* --- allocation ------------------------------------------------------------------------------- */

static ggl_status does_not_fit(const vk_backend *b, size_t size, ggl_error *err) {
    size_t all, left;
    ggl_vk_memory_left(b, &all, &left);
    return ggl_fail(
        err, GGL_NOMEM, "%s: %.1f MiB more do not fit on the device (%.1f of %.1f MiB are free)",
        b->base.name, (double)size / 1048576, (double)left / 1048576, (double)all / 1048576);
}

static ggl_status failed(const vk_backend *b, VkResult r, size_t size, ggl_error *err) {
    if (r == VK_ERROR_OUT_OF_DEVICE_MEMORY || r == VK_ERROR_OUT_OF_HOST_MEMORY)
        return does_not_fit(b, size, err);
    if (r == VK_ERROR_FEATURE_NOT_PRESENT)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: the driver has no kind of memory for a buffer of %.1f MiB",
                        b->base.name, (double)size / 1048576);
    return ggl_vk_fail(err, r, b->base.name);
}

/* Makes a buffer of mapped host memory; on failure *buf is empty. */
static ggl_status take_staging(vk_backend *b, ggl_buffer *buf, size_t size, ggl_error *err) {
    buf->size = size;
    VkResult r = ggl_vk_buffer_create(b, buf, NULL);
    if (r == VK_SUCCESS)
        r = ggl_vk_buffer_bind(
            b, buf, &(vk_memory_wish){.allowed = ~0u, .kinds = ggl_vk_memory_host, .map = true});
    if (r == VK_SUCCESS)
        return GGL_OK;
    ggl_vk_buffer_release(b, buf); /* the next transfer tries again */
    *buf = (ggl_buffer){0};
    return failed(b, r, size, err);
}

/* Makes a zeroed buffer for a region. */
static ggl_status take(vk_backend *b, ggl_buffer *buf, int region, size_t size, ggl_error *err) {
    if (!ggl_size_align(size > 0 ? size : 1, VK_BUFFER_ALIGN, &buf->size) ||
        (b->base.max_buffer && buf->size > b->base.max_buffer))
        return ggl_fail(err, GGL_LIMIT, "%s: a buffer of %.1f MiB; at most %.1f MiB are allowed",
                        b->base.name, (double)size / 1048576, (double)b->base.max_buffer / 1048576);
    const bool shares = ggl_vk_shares_memory(b), io = region == GGL_REGION_IO;
    const vk_memory_wish wish = {.allowed = ~0u,
                                 .kinds = shares && io ? ggl_vk_memory_shared_io
                                          : shares     ? ggl_vk_memory_both
                                                       : ggl_vk_memory_own,
                                 .map = shares && b->features.map};
    VkResult r = VK_SUCCESS;
    if (!io || !ggl_vk_make_shared(b, buf, &wish))
        r = ggl_vk_buffer_create(b, buf, NULL);
    if (r == VK_SUCCESS && !buf->shared)
        r = ggl_vk_buffer_bind(b, buf, &wish);
    if (r != VK_SUCCESS)
        return failed(b, r, size, err);
    if (!buf->mapped)
        return ggl_vk_buffer_clear(&b->base, buf, 0, buf->size, err);
    memset(buf->mapped, 0, buf->size); /* at once: the caller may write to it before the next run */
    return GGL_OK;
}

/* True if host memory for this purpose is used in place: weights where the device shares the host's
 * memory, and what is copied to and from io regions, unless the host sees these itself. */
static bool is_imported(const vk_backend *b, int region) {
    const bool shared = ggl_vk_shares_memory(b);
    return b->features.import && (region == GGL_REGION_IO ? !(shared && b->features.map) : shared);
}

/* Imports host memory in place. Only whole pages can be imported: the rest of the first and last
 * page exists too, but maybe nothing outside of them. */
static ggl_status import(vk_backend *b, ggl_buffer *buf, int region, size_t size, const void *at,
                         ggl_error *err) {
    const size_t align = b->limits.import_align, page = ggl_os_page_size();
    const VkExternalMemoryHandleTypeFlagBits kind =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    if (!is_imported(b, region) || align == 0 || !b->f.GetMemoryHostPointerPropertiesEXT)
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
    VkResult r = b->f.GetMemoryHostPointerPropertiesEXT(b->device->device, kind, first, &p);
    if (r == VK_SUCCESS)
        r = ggl_vk_buffer_create(b, buf, &external);
    if (r == VK_SUCCESS)
        r = ggl_vk_buffer_bind(b, buf,
                               &(vk_memory_wish){.allowed = p.memoryTypeBits,
                                                 .kinds = region == GGL_REGION_IO
                                                              ? ggl_vk_memory_host
                                                              : ggl_vk_memory_any,
                                                 .more = &pointer,
                                                 .size = buf->size});
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
    ggl_status st = at ? import(b, buf, region, size, at, err) : take(b, buf, region, size, err);
    if (st != GGL_OK) {
        ggl_vk_buffer_release(b, buf);
        ggl_free(buf);
        return st;
    }
    *out = buf;
    return GGL_OK;
}

/* --- transfers -------------------------------------------------------------------------------- */

/* Transfers are recorded in pieces: commands, with host memory for the bytes that they carry. One
 * piece at a time is open. It is submitted together with the next run, or when it is full, or when
 * the host waits. So what is uploaded and copied before a run costs neither a submission nor a wait
 * of its own. */
enum { N_PIECE = 4, PIECE_SIZE = 4 << 20, PIECE_ALIGN = 64, MOST_RANGES = 32 };

typedef struct piece {
    ggl_buffer buffer;
    VkCommandBuffer commands;
    size_t used;     /* bytes of the buffer that its commands access */
    uint64_t number; /* its last submission */
} piece;

/* Bytes of a buffer that the open piece's commands have accessed since their last barrier. */
typedef struct touched {
    VkBuffer buffer;
    size_t begin, end;
    bool write;
} touched;

struct vk_staging {
    piece piece[N_PIECE];
    int at; /* the open piece, or the one to be opened next */
    bool is_open;
    touched touched[MOST_RANGES];
    int n_touched;
};

/* Sets *out to the open piece. If no piece is open, waits until the next one is unused, and opens
 * it. */
static ggl_status open_piece(vk_backend *b, piece **out, ggl_error *err) {
    if (!b->staging && !(b->staging = ggl_calloc(1, sizeof *b->staging)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for transfers");
    vk_staging *s = b->staging;
    piece *p = *out = &s->piece[s->at];
    if (s->is_open)
        return GGL_OK;
    ggl_status st = ggl_vk_wait_for(b, p->number, err);
    if (st == GGL_OK && !p->commands)
        st = ggl_vk_new_commands(b, &p->commands, err);
    if (st == GGL_OK && !p->buffer.mapped)
        st = take_staging(b, &p->buffer, PIECE_SIZE, err);
    if (st == GGL_OK)
        st = ggl_vk_begin_commands(b, p->commands, err);
    s->is_open = st == GGL_OK;
    s->n_touched = 0;
    p->used = 0;
    return st;
}

/* Submits as ggl_vk_submit_run does. If it fails, what the open piece carries is lost. */
static ggl_status submit_run(vk_backend *b, const VkCommandBuffer *part, size_t n, uint64_t *number,
                             ggl_error *err) {
    vk_staging *s = b->staging;
    piece *p = s && s->is_open ? &s->piece[s->at] : NULL;
    uint64_t last = 0;
    ggl_status st = GGL_OK;
    if (p) {
        s->is_open = false;
        s->at = (s->at + 1) % N_PIECE;
        st = ggl_vk_end_commands(b, p->commands, err);
    }
    if (st == GGL_OK && n > 0)
        st = ggl_vk_submit(b, p ? p->commands : NULL, part, n, &last, err);
    else if (st == GGL_OK && p)
        st = ggl_vk_submit(b, NULL, &p->commands, 1, &last, err);
    if (st != GGL_OK)
        return st;
    if (p)
        p->number = last;
    if (number)
        *number = last;
    return GGL_OK;
}

ggl_status ggl_vk_submit_run(vk_backend *b, const VkCommandBuffer *part, size_t n, uint64_t *number,
                             ggl_error *err) {
    ggl_error why;
    if (b->device->broken.status != GGL_OK)
        return ggl_vk_break(b, &b->device->broken, err);
    why.status = submit_run(b, part, n, number, &why);
    return why.status == GGL_OK ? GGL_OK : ggl_vk_break(b, &why, err);
}

static ggl_status flush(vk_backend *b, ggl_error *err) {
    return ggl_vk_submit_run(b, NULL, 0, NULL, err);
}

ggl_status ggl_vk_wait_all(vk_backend *b, ggl_error *err) {
    ggl_status st = flush(b, err);
    return st == GGL_OK ? ggl_vk_wait_for(b, b->device->submitted, err) : st;
}

/* True if no commands that use the buffer are left, so that the host may write to its mapping. */
static bool is_idle(const vk_backend *b, const ggl_buffer *buf) {
    return buf->last <= b->device->done;
}

/* Notes that the open piece uses the buffer: any submission takes the piece along. */
static void note_use(const vk_backend *b, ggl_buffer *buf) {
    buf->last = b->device->submitted + 1;
}

/* Returns when no commands that use the buffer are left. What was submitted after them goes on. */
static ggl_status wait_for_buffer(vk_backend *b, const ggl_buffer *buf, ggl_error *err) {
    ggl_status st = buf->last > b->device->submitted ? flush(b, err) : GGL_OK;
    return st == GGL_OK ? ggl_vk_wait_for(b, buf->last, err) : st;
}

/* Puts a barrier before the next command of the open piece if it must wait for an earlier one: if
 * both access the same bytes, and one of them writes. */
static void wait_for_touched(vk_backend *b, const touched *next, int n) {
    vk_staging *s = b->staging;
    bool wait = s->n_touched + n > MOST_RANGES;
    for (int i = 0; i < n && !wait; i++)
        for (int k = 0; k < s->n_touched && !wait; k++) {
            const touched *x = &next[i], *y = &s->touched[k];
            wait = x->buffer == y->buffer && (x->write || y->write) && x->begin < y->end &&
                   y->begin < x->end;
        }
    if (wait) {
        ggl_vk_transfer_barrier(b, s->piece[s->at].commands);
        s->n_touched = 0;
    }
    for (int i = 0; i < n; i++)
        s->touched[s->n_touched++] = next[i];
}

/* Records n copies, at most MOST_RANGES. */
static void record_copies(vk_backend *b, const piece *p, ggl_buffer *dst, ggl_buffer *src,
                          const ggl_copy_range *range, size_t n) {
    VkBufferCopy copy[MOST_RANGES];
    touched used[2] = {{dst->buffer, SIZE_MAX, 0, true}, {src->buffer, SIZE_MAX, 0, false}};
    uint32_t n_copy = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t to = dst->shift + range[i].to, from = src->shift + range[i].from,
                     size = range[i].size;
        if (size == 0)
            continue;
        copy[n_copy++] = (VkBufferCopy){.srcOffset = from, .dstOffset = to, .size = size};
        used[0].begin = to < used[0].begin ? to : used[0].begin;
        used[0].end = to + size > used[0].end ? to + size : used[0].end;
        used[1].begin = from < used[1].begin ? from : used[1].begin;
        used[1].end = from + size > used[1].end ? from + size : used[1].end;
    }
    if (n_copy == 0)
        return;
    wait_for_touched(b, used, 2);
    note_use(b, dst);
    note_use(b, src);
    b->f.CmdCopyBuffer(p->commands, src->buffer, dst->buffer, n_copy, copy);
}

/* Opens a piece with room, and sets *n to as many of `left` bytes as it has room for, and *at to
 * where they go in it. */
static ggl_status take_room(vk_backend *b, size_t left, piece **out, size_t *at, size_t *n,
                            ggl_error *err) {
    ggl_status st = open_piece(b, out, err);
    if (st == GGL_OK && (*out)->used == PIECE_SIZE) {
        st = flush(b, err);
        if (st == GGL_OK)
            st = open_piece(b, out, err);
    }
    if (st != GGL_OK)
        return st;
    *at = (*out)->used;
    *n = left < PIECE_SIZE - *at ? left : PIECE_SIZE - *at;
    (*out)->used += (*n + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
    return GGL_OK;
}

/* Copies host data to a buffer through pieces. src NULL: zeros. */
static ggl_status stage_in(vk_backend *b, ggl_buffer *dst, size_t offset, const char *src,
                           size_t size, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t done = 0, at, n; done < size; done += n) {
        piece *p;
        st = take_room(b, size - done, &p, &at, &n, err);
        if (st != GGL_OK)
            return st;
        if (src)
            memcpy(p->buffer.mapped + at, src + done, n);
        else
            memset(p->buffer.mapped + at, 0, n);
        record_copies(b, p, dst, &p->buffer, &(ggl_copy_range){offset + done, at, n}, 1);
    }
    return st;
}

/* Bytes that a submitted piece brings to the host. */
typedef struct arrival {
    const piece *p;
    size_t at, n;
} arrival;

/* Copies a buffer to the host. Two pieces are in flight: the device writes one while the host
 * reads the other. */
static ggl_status stage_out(vk_backend *b, ggl_buffer *src, size_t offset, char *dst, size_t size,
                            ggl_error *err) {
    arrival before = {0};
    ggl_status st = GGL_OK;
    for (size_t done = 0; (done < size || before.n > 0) && st == GGL_OK;) {
        arrival now = {0};
        piece *p = NULL;
        if (done < size)
            st = take_room(b, size - done, &p, &now.at, &now.n, err);
        if (p && st == GGL_OK) {
            now.p = p;
            record_copies(b, p, &p->buffer, src, &(ggl_copy_range){now.at, offset + done, now.n},
                          1);
            st = flush(b, err);
        }
        if (before.n > 0 && st == GGL_OK)
            st = ggl_vk_wait_for(b, before.p->number, err);
        if (before.n > 0 && st == GGL_OK)
            memcpy(dst + done - before.n, before.p->buffer.mapped + before.at, before.n);
        done += now.n;
        before = now;
    }
    return st;
}

void ggl_vk_staging_free(vk_backend *b) {
    for (int i = 0; b->staging && i < N_PIECE; i++)
        ggl_vk_buffer_release(
            b, &b->staging->piece[i].buffer); /* command buffers are freed with their pool */
    ggl_free(b->staging);
    b->staging = NULL;
}

/* --- the backend's functions ------------------------------------------------------------------ */

ggl_status ggl_vk_buffer_upload(ggl_backend *base, ggl_buffer *dst, size_t offset, const void *src,
                                size_t size, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    if (!dst->mapped || !is_idle(b, dst))
        return stage_in(b, dst, offset, src, size, err);
    memcpy(dst->mapped + offset, src, size);
    return GGL_OK;
}

ggl_status ggl_vk_buffer_download(ggl_backend *base, const ggl_buffer *src, size_t offset,
                                  void *dst, size_t size, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    if (!src->mapped)
        return stage_out(b, (ggl_buffer *)src, offset, dst, size, err); /* which notes its use */
    ggl_status st = wait_for_buffer(b, src, err);
    if (st == GGL_OK)
        memcpy(dst, src->mapped + offset, size);
    return st;
}

ggl_status ggl_vk_buffer_copy(ggl_backend *base, ggl_buffer *dst, const ggl_buffer *src,
                              const ggl_copy_range *range, size_t n, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    piece *p;
    ggl_status st = n > 0 ? open_piece(b, &p, err) : GGL_OK;
    for (size_t done = 0; done < n && st == GGL_OK; done += MOST_RANGES)
        record_copies(b, p, dst, (ggl_buffer *)src, range + done,
                      n - done < MOST_RANGES ? n - done : MOST_RANGES);
    return st;
}

ggl_status ggl_vk_buffer_clear(ggl_backend *base, ggl_buffer *buf, size_t offset, size_t size,
                               ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    if (size == 0)
        return GGL_OK;
    if (buf->mapped && is_idle(b, buf)) {
        memset(buf->mapped + offset, 0, size);
        return GGL_OK;
    }
    if (offset % 4 != 0 || size % 4 != 0) /* vkCmdFillBuffer needs multiples of 4 */
        return stage_in(b, buf, offset, NULL, size, err);
    piece *p;
    ggl_status st = open_piece(b, &p, err);
    if (st != GGL_OK)
        return st;
    const size_t at = buf->shift + offset;
    wait_for_touched(b, &(touched){buf->buffer, at, at + size, true}, 1);
    note_use(b, buf);
    b->f.CmdFillBuffer(p->commands, buf->buffer, at, size, 0);
    return GGL_OK;
}

void ggl_vk_buffer_free(ggl_backend *base, ggl_buffer *buf) {
    vk_backend *b = (vk_backend *)base;
    if (!buf)
        return;
    (void)flush(b, NULL); /* what is recorded may use the buffer */
    b->f.DeviceWaitIdle(b->device->device);
    ggl_vk_buffer_release(b, buf);
    ggl_free(buf);
}
