/* Buffers in the host's memory: what backends whose memory that is share. */
#ifndef GGL_BACKENDS_HOST_MEMORY_H
#define GGL_BACKENDS_HOST_MEMORY_H

#include <string.h>

#include "ggl/backend.h"

struct ggl_buffer {
    char *data;
    size_t size;
    bool owned;
    bool huge; /* huge pages have been requested */
};

static inline ggl_status host_upload(ggl_backend *b, ggl_buffer *dst, size_t offset,
                                     const void *src, size_t size, ggl_error *err) {
    (void)b;
    (void)err;
    memcpy(dst->data + offset, src, size);
    return GGL_OK;
}

static inline ggl_status host_download(ggl_backend *b, const ggl_buffer *src, size_t offset,
                                       void *dst, size_t size, ggl_error *err) {
    (void)b;
    (void)err;
    memcpy(dst, src->data + offset, size);
    return GGL_OK;
}

static inline ggl_status host_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                                   const ggl_copy_range *range, size_t n, ggl_error *err) {
    (void)b;
    (void)err;
    for (size_t i = 0; i < n; i++)
        memcpy(dst->data + range[i].to, src->data + range[i].from, range[i].size);
    return GGL_OK;
}

static inline ggl_status host_clear(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                                    ggl_error *err) {
    (void)b;
    (void)err;
    memset(buf->data + offset, 0, size);
    return GGL_OK;
}

static inline ggl_status host_wait(ggl_backend *b, ggl_error *err) {
    (void)b;
    (void)err;
    return GGL_OK;
}

#endif
