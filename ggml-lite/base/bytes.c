#include "ggl/internal/bytes.h"

enum { NO_TEXT = -1 };

void ggl_bytes_fini(ggl_bytes *b) {
    ggl_free(b->at);
    *b = (ggl_bytes){0};
}

void *ggl_put_room(ggl_bytes *b, size_t size) {
    size_t n;
    if (b->failed || !ggl_size_add(b->n, size, &n) || !ggl_grow(&b->at, &b->cap, n, 1)) {
        b->failed = true;
        return NULL;
    }
    void *at = b->at + b->n;
    memset(at, 0, size);
    b->n = n;
    return at;
}

void ggl_put(ggl_bytes *b, const void *data, size_t size) {
    void *at = ggl_put_room(b, size);
    if (at && size)
        memcpy(at, data, size);
}

void ggl_put_text(ggl_bytes *b, const char *text) {
    const size_t n = text ? strlen(text) : 0;
    ggl_put_u32(b, text ? (uint32_t)n : (uint32_t)NO_TEXT);
    ggl_put(b, text, n);
}

const void *ggl_get(ggl_reader *r, size_t size) {
    if (r->failed || (size_t)(r->end - r->at) < size) {
        r->failed = true;
        return NULL;
    }
    const void *at = r->at;
    r->at += size;
    return at;
}

void ggl_get_to(ggl_reader *r, void *to, size_t size) {
    const void *at = ggl_get(r, size);
    if (at && size)
        memcpy(to, at, size);
    else
        memset(to, 0, size);
}

uint32_t ggl_get_u32(ggl_reader *r) {
    uint32_t x;
    ggl_get_to(r, &x, sizeof x);
    return x;
}

uint64_t ggl_get_u64(ggl_reader *r) {
    uint64_t x;
    ggl_get_to(r, &x, sizeof x);
    return x;
}

ggl_str ggl_get_text(ggl_reader *r) {
    const uint32_t n = ggl_get_u32(r);
    if (r->failed || n == (uint32_t)NO_TEXT)
        return (ggl_str){0};
    const char *s = ggl_get(r, n);
    return s ? (ggl_str){s, n} : (ggl_str){0};
}
