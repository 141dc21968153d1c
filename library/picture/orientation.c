#include "orientation.h"

#include <stdbool.h>
#include <string.h>

typedef struct span {
    const unsigned char *p;
    size_t n;
} span;

static uint32_t big(const unsigned char *p, int n) {
    uint32_t x = 0;
    for (int i = 0; i < n; i++)
        x = x << 8 | p[i];
    return x;
}

static uint32_t little(const unsigned char *p, int n) {
    uint32_t x = 0;
    while (n-- > 0)
        x = x << 8 | p[n];
    return x;
}

static span part(span s, size_t at, size_t n) {
    return at <= s.n && n <= s.n - at ? (span){s.p + at, n} : (span){NULL, 0};
}

static bool begins(span s, const char *with, size_t n) {
    return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* --- where the block is ------------------------------------------------------------------------ */

/* Marker segments: 0xff, a code, and a length that counts its own two bytes. Those of interest stand before the first scan, 0xda. */
static span block_of_jpeg(span f) {
    for (size_t at = 2; at + 4 <= f.n && f.p[at] == 0xff;) {
        const int code = f.p[at + 1];
        if (code == 0xff) { /* fills up */
            at++;
            continue;
        }
        const size_t n = big(f.p + at + 2, 2);
        const span segment = part(f, at + 4, n < 2 ? 0 : n - 2);
        if (code == 0xda || n < 2 || !segment.p)
            break;
        if (code == 0xe1 && begins(segment, "Exif\0\0", 6))
            return part(segment, 6, segment.n - 6);
        at += 2 + n;
    }
    return (span){NULL, 0};
}

/* Chunks: a length, a name, so many bytes, and a sum to check them. */
static span block_of_png(span f) {
    for (size_t at = 8; at + 12 <= f.n;) {
        const size_t n = big(f.p + at, 4);
        const span chunk = part(f, at + 8, n);
        if (!chunk.p)
            break;
        if (memcmp(f.p + at + 4, "eXIf", 4) == 0)
            return chunk;
        at += 12 + n;
    }
    return (span){NULL, 0};
}

/* Chunks: a name, a length, and so many bytes, padded to an even number. */
static span block_of_webp(span f) {
    for (size_t at = 12; at + 8 <= f.n;) {
        const size_t n = little(f.p + at + 4, 4);
        const span chunk = part(f, at + 8, n);
        if (!chunk.p)
            break;
        if (memcmp(f.p + at, "EXIF", 4) == 0)
            return begins(chunk, "Exif\0\0", 6) ? part(chunk, 6, n - 6) : chunk;
        at += 8 + n + n % 2;
    }
    return (span){NULL, 0};
}

/* --- what it says ------------------------------------------------------------------------------ */

/* A block is a TIFF: an order of bytes, the number 42, the place of a directory. That has entries of 12 bytes: tag, type, count, value. */
static int orientation_in(span block) {
    enum { ORIENTATION = 0x0112, SHORT = 3, LONG = 4 };
    const bool is_little = begins(block, "II*\0", 4);
    uint32_t (*const number)(const unsigned char *p, int n) = is_little ? little : big;
    if (block.n < 8 || (!is_little && !begins(block, "MM\0*", 4)))
        return 1;
    const size_t at = number(block.p + 4, 4);
    const span count = part(block, at, 2);
    for (size_t i = 0; count.p && i < number(count.p, 2); i++) {
        const span e = part(block, at + 2 + 12 * i, 12);
        if (!e.p)
            break;
        const uint32_t type = number(e.p + 2, 2);
        if (number(e.p, 2) != ORIENTATION || number(e.p + 4, 4) != 1 ||
            (type != SHORT && type != LONG))
            continue;
        const uint32_t value = number(e.p + 8, type == SHORT ? 2 : 4);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

int llm_picture_orientation(const unsigned char *data, size_t n) {
    const span f = {data, n};
    if (begins(f, "\xff\xd8", 2))
        return orientation_in(block_of_jpeg(f));
    if (begins(f, "\x89PNG", 4))
        return orientation_in(block_of_png(f));
    if (begins(f, "RIFF", 4))
        return orientation_in(block_of_webp(f));
    return 1;
}

/* --- what follows ------------------------------------------------------------------------------ */

ggl_status llm_picture_turn(llm_picture **p, int orientation, const char *name, ggl_error *err) {
    static const struct {
        bool swapped, from_right, from_bottom; /* sides; columns and rows of the old picture */
    } how[] = {[2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true},
               [5] = {true, false, false}, [6] = {true, false, true}, [7] = {true, true, true},
               [8] = {true, true, false}};
    llm_picture *const from = *p;
    if (orientation < 2 || orientation > 8)
        return GGL_OK;
    const bool swapped = how[orientation].swapped;
    *p = NULL;
    const ggl_status st = llm_picture_new(p, swapped ? from->height : from->width,
                                          swapped ? from->width : from->height, name, err);
    for (int64_t y = 0; st == GGL_OK && y < (*p)->height; y++)
        for (int64_t x = 0; x < (*p)->width; x++) {
            const int64_t ox = swapped ? y : x, oy = swapped ? x : y;
            const int64_t column = how[orientation].from_right ? from->width - 1 - ox : ox;
            const int64_t row = how[orientation].from_bottom ? from->height - 1 - oy : oy;
            memcpy((*p)->rgb + (y * (*p)->width + x) * 3,
                   from->rgb + (row * from->width + column) * 3, 3);
        }
    llm_picture_free(from);
    return st;
}
