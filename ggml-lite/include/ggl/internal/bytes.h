/* Writes and reads bytes that another process of the same build reads and writes, such as graphs (image.h) and the orders
 * of ranks. Numbers have the byte order of the machine. Errors are sticky: callers check once, at the end.
 *
 *     ggl_bytes b = {0};
 *     ggl_put_u32(&b, 7);
 *     ggl_put_text(&b, "name");
 *     if (!b.failed) .. send b.at[0 .. b.n) ..
 *     ggl_bytes_fini(&b);
 *
 *     ggl_reader r = {at, at + n, false};
 *     uint32_t x = ggl_get_u32(&r);
 *     ggl_str name = ggl_get_text(&r);
 *     if (r.failed || r.at != r.end) .. damaged ..
 *
 * Threads: an object belongs to one at a time. */
#ifndef GGL_BYTES_H
#define GGL_BYTES_H

#include "ggl/internal/alloc.h"
#include "ggl/str.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All zeros: empty. */
typedef struct ggl_bytes {
    char *at;
    size_t n, cap;
    bool failed; /* out of memory */
} ggl_bytes;

void ggl_bytes_fini(ggl_bytes *b);
/* Returns `size` new bytes at the end, zeroed; NULL: out of memory. Valid until the next call. */
void *ggl_put_room(ggl_bytes *b, size_t size);
void ggl_put(ggl_bytes *b, const void *data, size_t size);
void ggl_put_text(ggl_bytes *b, const char *text); /* NULL is kept apart from "" */
static inline void ggl_put_u32(ggl_bytes *b, uint32_t x) {
    ggl_put(b, &x, sizeof x);
}
static inline void ggl_put_u64(ggl_bytes *b, uint64_t x) {
    ggl_put(b, &x, sizeof x);
}

typedef struct ggl_reader {
    const char *at, *end;
    bool failed; /* there was less to read than was asked for */
} ggl_reader;

/* Returns the next `size` bytes, which are not copied; NULL, and the reader has failed: there are fewer. */
const void *ggl_get(ggl_reader *r, size_t size);
/* Copies the next `size` bytes to `to`; zeros if there are fewer. */
void ggl_get_to(ggl_reader *r, void *to, size_t size);
ggl_str ggl_get_text(ggl_reader *r); /* not copied; s is NULL for NULL */
uint32_t ggl_get_u32(ggl_reader *r); /* 0 if there is none */
uint64_t ggl_get_u64(ggl_reader *r);

#ifdef __cplusplus
}
#endif
#endif
