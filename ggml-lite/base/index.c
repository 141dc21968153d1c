/* The hash table of ggl/internal/index.h. The hash is SipHash-1-3 (Aumasson and Bernstein 2012, with one
 * round for each word and three at the end): without the seed, nobody can construct keys that
 * collide. Simpler seeded hashes do not ensure that: in them, some pairs of keys collide for every
 * seed. */
#include "ggl/internal/index.h"

#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/steps.h"

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static uint64_t rotate(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

static void sip_round(sip *s) {
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32) + s->d;
    s->c += s->b;
    s->d = rotate(s->d, 21) ^ s->a;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

static void sip_word(sip *s, uint64_t word) {
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

static uint64_t hash(const uint64_t *seed, ggl_str key) {
    sip s = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
             seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    uint64_t word, last = (uint64_t)key.n << 56;
    size_t n = key.n;
    for (; n >= 8; n -= 8, key.s += 8) {
        memcpy(&word, key.s, 8);
        sip_word(&s, word);
    }
    for (size_t i = 0; i < n; i++)
        last |= (uint64_t)(unsigned char)key.s[i] << (8 * i);
    sip_word(&s, last);
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

static ggl_str key_at(const ggl_index *x, const void *array, size_t i) {
    const char *element = (const char *)array + i * x->stride;
    ggl_str s = {element, x->key_size};
    if (x->key_size == GGL_INDEX_STRINGS)
        memcpy(&s, element, sizeof s);
    return s;
}

/* Allocates slots for n elements, at most half of which will be used. */
static ggl_status make_slots(ggl_index *x, size_t n, ggl_error *err) {
    size_t size = 8;
    if (n >= (size_t)1 << 31)
        return ggl_fail(err, GGL_LIMIT, "%zu names, at most 2^31 are supported", n);
    while (size < n * 2)
        size *= 2;
    x->slots = ggl_calloc(size, sizeof *x->slots);
    if (!x->slots)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a table of %zu names", n);
    x->mask = size - 1;
    return GGL_OK;
}

/* Makes the seed from the time and the addresses of stack and heap, which the author of a file
 * cannot know. */
static void make_seed(ggl_index *x) {
    const int64_t now = ggl_os_time(), second = 1000000000;
    const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
    x->seed[0] = (uint64_t)(uintptr_t)x->slots * odd ^ (uint64_t)(now % second);
    x->seed[1] = (uint64_t)(uintptr_t)&now * odd ^ (uint64_t)(now / second) << 32;
}

ggl_status ggl_index_init(ggl_index *x, size_t n, size_t stride, size_t key_size, ggl_error *err) {
    *x = (ggl_index){.stride = stride, .key_size = key_size};
    ggl_status s = make_slots(x, n, err);
    if (s == GGL_OK)
        make_seed(x);
    return s;
}

void ggl_index_fini(ggl_index *x) {
    ggl_free(x->slots);
    *x = (ggl_index){0};
}

/* Returns the slot of the element with this key, or the free slot where it would go. */
static uint32_t *slot_of(const ggl_index *x, const void *array, ggl_str key) {
    size_t at = (size_t)hash(x->seed, key) & x->mask;
    for (; x->slots[at] != 0; at = (at + 1) & x->mask) {
        ggl_str other = key_at(x, array, x->slots[at] - 1);
        GGL_STEPS(1);
        if (other.n == key.n && memcmp(other.s, key.s, key.n) == 0)
            break;
    }
    GGL_STEPS(1);
    return &x->slots[at];
}

ggl_status ggl_index_reserve(ggl_index *x, const void *array, size_t n, ggl_error *err) {
    ggl_index old = *x;
    if (n <= (x->mask + 1) / 2)
        return GGL_OK;
    ggl_status s = make_slots(x, n, err);
    if (s != GGL_OK) {
        *x = old;
        return s;
    }
    for (size_t i = 0; i <= old.mask; i++)
        if (old.slots[i] != 0)
            *slot_of(x, array, key_at(x, array, old.slots[i] - 1)) = old.slots[i];
    ggl_free(old.slots);
    return GGL_OK;
}

size_t ggl_index_put(ggl_index *x, const void *array, size_t i) {
    uint32_t *slot = slot_of(x, array, key_at(x, array, i));
    if (*slot == 0) {
        *slot = (uint32_t)(i + 1);
        x->n++;
    }
    return *slot - 1;
}

size_t ggl_index_find(const ggl_index *x, const void *array, ggl_str key) {
    if (!x->slots)
        return SIZE_MAX;
    uint32_t slot = *slot_of(x, array, key);
    return slot == 0 ? SIZE_MAX : slot - 1;
}
