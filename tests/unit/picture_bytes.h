/* Builds the bytes of pictures: PNG of all kinds without compression, BMP, PPM, and blocks of EXIF. */
#ifndef TEST_PICTURE_BYTES_H
#define TEST_PICTURE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURE_MOST = 1 << 16 };

typedef struct picture_bytes {
    unsigned char data[PICTURE_MOST];
    size_t n;
} picture_bytes;

static inline void put(picture_bytes *b, const void *data, size_t n) {
    if (n > sizeof b->data - b->n)
        abort();
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

static inline void put_big(picture_bytes *b, uint32_t x, int n) {
    while (n-- > 0)
        put(b, &(unsigned char){(unsigned char)(x >> 8 * n)}, 1);
}

static inline void put_little(picture_bytes *b, uint32_t x, int n) {
    for (; n > 0; n--, x >>= 8)
        put(b, &(unsigned char){(unsigned char)x}, 1);
}

static inline void put_number(picture_bytes *b, uint32_t x, int n, bool is_little) {
    (is_little ? put_little : put_big)(b, x, n);
}

/* --- EXIF ------------------------------------------------------------------------------------ */

/* A TIFF with one other tag before the orientation, which is a short or a long number. */
static inline void put_exif(picture_bytes *b, int orientation, bool is_little, bool is_long) {
    put(b, is_little ? "II*\0" : "MM\0*", 4);
    put_number(b, 8, 4, is_little);
    put_number(b, 2, 2, is_little);
    put_number(b, 0x0100, 2, is_little); /* a width */
    put_number(b, 4, 2, is_little);
    put_number(b, 1, 4, is_little);
    put_number(b, 7, 4, is_little);
    put_number(b, 0x0112, 2, is_little);
    put_number(b, is_long ? 4 : 3, 2, is_little);
    put_number(b, 1, 4, is_little);
    put_number(b, (uint32_t)orientation, is_long ? 4 : 2, is_little);
    put_number(b, 0, is_long ? 0 : 2, is_little);
    put_number(b, 0, 4, is_little); /* no further directory */
}

/* --- PNG ------------------------------------------------------------------------------------- */

enum { PNG_GREY = 0, PNG_RGB = 2, PNG_PALETTE = 3, PNG_GREY_ALPHA = 4, PNG_RGB_ALPHA = 6 };

typedef struct png_how {
    int width, height, depth, color;
    bool interlaced;
    int orientation;  /* 0: not told */
    bool transparent; /* a chunk tRNS */
    /* The sample of a pixel, of `depth` bits; of a palette an index. Entry i of the palette is (i * 7, i * 5, i * 3), as bytes. */
    uint32_t (*sample)(int x, int y, int channel);
} png_how;

static inline uint32_t png_sum(const unsigned char *p, size_t n) {
    uint32_t sum = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        sum ^= p[i];
        for (int k = 0; k < 8; k++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
    }
    return ~sum;
}

/* Begins a chunk; its length is written by png_chunk_end. */
static inline size_t png_chunk(picture_bytes *b, const char *name) {
    const size_t at = b->n;
    put_big(b, 0, 4);
    put(b, name, 4);
    return at;
}

static inline void png_chunk_end(picture_bytes *b, size_t at) {
    const size_t n = b->n - at - 8;
    for (int k = 0; k < 4; k++)
        b->data[at + (size_t)k] = (unsigned char)(n >> (24 - 8 * k));
    put_big(b, png_sum(b->data + at + 4, n + 4), 4);
}

static inline int png_channels(int color) {
    return color == PNG_RGB ? 3 : color == PNG_GREY_ALPHA ? 2 : color == PNG_RGB_ALPHA ? 4 : 1;
}

/* The lines of a picture, or of one pass over it: every dx-th pixel from x0 on of every dy-th line from y0 on. */
static inline void png_lines(picture_bytes *b, const png_how *p, int x0, int y0, int dx, int dy) {
    for (int y = y0; y < p->height && x0 < p->width; y += dy) {
        uint32_t bits = 0;
        int n_bits = 0;
        put_big(b, 0, 1); /* no filter */
        for (int x = x0; x < p->width; x += dx)
            for (int c = 0; c < png_channels(p->color); c++) {
                const uint32_t value = p->sample(x, y, c);
                if (p->depth == 16)
                    put_big(b, value, 2);
                else
                    bits = bits << p->depth | value, n_bits += p->depth;
                if (n_bits == 8)
                    put_big(b, bits, 1), bits = 0, n_bits = 0;
            }
        if (n_bits > 0)
            put_big(b, bits << (8 - n_bits), 1);
    }
}

/* The same as zlib's bytes: a header, one block as it is, and a sum. */
static inline void png_data(picture_bytes *b, const png_how *p) {
    static const int passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    uint32_t low = 1, high = 0;
    put(b, "\x78\x01\x01", 3);
    const size_t at = b->n;
    put_little(b, 0, 4);
    if (!p->interlaced)
        png_lines(b, p, 0, 0, 1, 1);
    for (int k = 0; k < 7 && p->interlaced; k++)
        png_lines(b, p, passes[k][0], passes[k][1], passes[k][2], passes[k][3]);
    const size_t n = b->n - at - 4;
    for (int k = 0; k < 2; k++) {
        b->data[at + (size_t)k] = (unsigned char)(n >> 8 * k);
        b->data[at + 2 + (size_t)k] = (unsigned char)~(n >> 8 * k);
    }
    for (size_t i = at + 4; i < b->n; i++) {
        low = (low + b->data[i]) % 65521;
        high = (high + low) % 65521;
    }
    put_big(b, high << 16 | low, 4);
}

static inline void put_png(picture_bytes *b, const png_how *p) {
    b->n = 0;
    put(b, "\x89PNG\r\n\x1a\n", 8);
    size_t at = png_chunk(b, "IHDR");
    put_big(b, (uint32_t)p->width, 4);
    put_big(b, (uint32_t)p->height, 4);
    put(b, (unsigned char[]){(unsigned char)p->depth, (unsigned char)p->color, 0, 0, p->interlaced},
        5);
    png_chunk_end(b, at);
    if (p->orientation) {
        at = png_chunk(b, "eXIf");
        put_exif(b, p->orientation, p->orientation % 2, false);
        png_chunk_end(b, at);
    }
    if (p->color == PNG_PALETTE) {
        at = png_chunk(b, "PLTE");
        for (int i = 0; i < 1 << p->depth; i++)
            put(b,
                (unsigned char[]){(unsigned char)(i * 7), (unsigned char)(i * 5),
                                  (unsigned char)(i * 3)},
                3);
        png_chunk_end(b, at);
    }
    if (p->transparent) {
        at = png_chunk(b, "tRNS");
        put_big(b, 0, p->color == PNG_RGB ? 4 : 0);
        put_big(b, 0x40, 2);
        png_chunk_end(b, at);
    }
    at = png_chunk(b, "IDAT");
    png_data(b, p);
    png_chunk_end(b, at);
    png_chunk_end(b, png_chunk(b, "IEND"));
}

/* --- BMP and PPM ----------------------------------------------------------------------------- */

/* bits: 24 or 32; height < 0: from the top down. The sample is a byte. */
static inline void put_bmp(picture_bytes *b, int width, int height, int bits, bool masked,
                           uint32_t (*sample)(int x, int y, int channel)) {
    const int n_rows = height < 0 ? -height : height, begin = 14 + 40 + (masked ? 12 : 0);
    b->n = 0;
    put(b, "BM", 2);
    put_little(b, 0, 4);
    put_little(b, 0, 4);
    put_little(b, (uint32_t)begin, 4);
    put_little(b, 40, 4);
    put_little(b, (uint32_t)width, 4);
    put_little(b, (uint32_t)height, 4);
    put_little(b, 1, 2);
    put_little(b, (uint32_t)bits, 2);
    put_little(b, masked ? 3 : 0, 4);
    for (int i = 0; i < 5; i++)
        put_little(b, 0, 4);
    if (masked) { /* red first */
        put_little(b, 0xff, 4);
        put_little(b, 0xff00, 4);
        put_little(b, 0xff0000, 4);
    }
    for (int i = 0; i < n_rows; i++) {
        const int y = height < 0 ? i : n_rows - 1 - i;
        for (int x = 0; x < width; x++) {
            for (int c = 0; c < 3; c++)
                put_little(b, sample(x, y, masked ? c : 2 - c), 1);
            put_little(b, 0, bits == 32 ? 1 : 0);
        }
        while ((b->n - (size_t)begin) % 4)
            put_little(b, 0, 1);
    }
}

static inline void put_ppm(picture_bytes *b, const char *header, int n_samples, int size,
                           uint32_t (*sample)(int x, int y, int channel)) {
    b->n = 0;
    put(b, header, strlen(header));
    for (int i = 0; i < n_samples; i++)
        put_big(b, sample(i, 0, 0), size);
}

#endif
