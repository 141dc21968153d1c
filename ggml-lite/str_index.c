/* See str_index.h. */
#include "str_index.h"

#include <string.h>

#include "ggl/alloc.h"

/* Eight bytes at a time: xor in, multiply by an odd constant, fold the upper half (which the
 * product mixed well) into the lower. The length goes in first, so that zero bytes at the end
 * count. */
static uint64_t hash(uint64_t h, const char *s, size_t n) {
    const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
    h = (h ^ n) * odd;
    h ^= h >> 29;
    while (n > 0) {
        uint64_t word = 0;
        size_t k = n < 8 ? n : 8;
        memcpy(&word, s, k);
        h = (h ^ word) * odd;
        h ^= h >> 32;
        s += k;
        n -= k;
    }
    h *= odd;
    return h ^ h >> 32;
}

static ggl_str string_at(const void *array, size_t stride, size_t i) {
    ggl_str s;
    memcpy(&s, (const char *)array + i * stride, sizeof s);
    return s;
}

ggl_status str_index_init(str_index *x, size_t n, ggl_error *err) {
    *x = (str_index){0};
    if (n >= (size_t)1 << 31)
        return ggl_fail(err, GGL_LIMIT, "%zu names, at most 2^31 are supported", n);
    size_t size = 8;
    while (size < n * 2)
        size *= 2;
    x->slots = ggl_calloc(size, sizeof *x->slots);
    if (!x->slots)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a table of %zu names", n);
    x->mask = size - 1;
    /* where the loader put the stack and this table: as hard to guess as address randomization
     * makes it */
    x->seed = (uint64_t)(uintptr_t)x->slots * 0xd6e8feb86659fd93u ^ (uint64_t)(uintptr_t)&size;
    return GGL_OK;
}

void str_index_fini(str_index *x) {
    ggl_free(x->slots);
    *x = (str_index){0};
}

/* The slot of this string, or the free one where it would go. */
static uint32_t *slot_of(const str_index *x, const void *array, size_t stride, ggl_str key) {
    size_t at = (size_t)hash(x->seed, key.s, key.n) & x->mask;
    for (; x->slots[at] != 0; at = (at + 1) & x->mask) {
        ggl_str other = string_at(array, stride, x->slots[at] - 1);
        if (other.n == key.n && memcmp(other.s, key.s, key.n) == 0)
            break;
    }
    return &x->slots[at];
}

size_t str_index_put(str_index *x, const void *array, size_t stride, size_t i) {
    uint32_t *slot = slot_of(x, array, stride, string_at(array, stride, i));
    if (*slot == 0)
        *slot = (uint32_t)(i + 1);
    return *slot - 1;
}

size_t str_index_find(const str_index *x, const void *array, size_t stride, ggl_str key) {
    if (!x->slots)
        return SIZE_MAX;
    uint32_t slot = *slot_of(x, array, stride, key);
    return slot == 0 ? SIZE_MAX : slot - 1;
}
