#include "ggl/internal/xxh64.h"

#include <string.h>

#define P1 UINT64_C(0x9E3779B185EBCA87)
#define P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define P3 UINT64_C(0x165667B19E3779F9)
#define P4 UINT64_C(0x85EBCA77C2B2AE63)
#define P5 UINT64_C(0x27D4EB2F165667C5)

static uint64_t rotate(uint64_t x, int r) {
    return x << r | x >> (64 - r);
}

/* Return the bytes at p as a little-endian number. GCC and clang make one load of each. */
static uint64_t number32(const unsigned char *p) {
    return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}
static uint64_t number64(const unsigned char *p) {
    return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

static uint64_t mix(uint64_t lane, uint64_t input) {
    return rotate(lane + input * P2, 31) * P1;
}

static void add_block(ggl_xxh64 *s, const unsigned char *p) {
    for (int k = 0; k < 4; k++)
        s->lane[k] = mix(s->lane[k], number64(p + 8 * k));
}

void ggl_xxh64_begin(ggl_xxh64 *s) {
    *s = (ggl_xxh64){.lane = {P1 + P2, P2, 0, UINT64_C(0) - P1}};
}

void ggl_xxh64_add(ggl_xxh64 *s, const void *data, size_t n) {
    const unsigned char *p = data;
    while (n > 0) {
        const size_t have = s->n % 32;
        if (have == 0 && n >= 32) {
            add_block(s, p);
            s->n += 32;
            p += 32;
            n -= 32;
            continue;
        }
        const size_t take = 32 - have < n ? 32 - have : n;
        memcpy(s->block + have, p, take);
        s->n += take;
        p += take;
        n -= take;
        if (have + take == 32)
            add_block(s, s->block);
    }
}

/* Adds the last bytes, fewer than 32, which are in no block. */
static uint64_t add_rest(uint64_t h, const unsigned char *p, size_t n) {
    for (; n >= 8; p += 8, n -= 8)
        h = rotate(h ^ mix(0, number64(p)), 27) * P1 + P4;
    for (; n >= 4; p += 4, n -= 4)
        h = rotate(h ^ number32(p) * P1, 23) * P2 + P3;
    for (; n > 0; p++, n--)
        h = rotate(h ^ *p * P5, 11) * P1;
    return h;
}

uint64_t ggl_xxh64_end(const ggl_xxh64 *s) {
    static const int turns[] = {1, 7, 12, 18};
    uint64_t h = P5;
    if (s->n >= 32) {
        h = 0;
        for (int k = 0; k < 4; k++)
            h += rotate(s->lane[k], turns[k]);
        for (int k = 0; k < 4; k++)
            h = (h ^ mix(0, s->lane[k])) * P1 + P4;
    }
    h = add_rest(h + s->n, s->block, s->n % 32);
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}
