/* BMP with 24 or 32 bits for each pixel and without compression: a header of 14 bytes, one whose first number is its length, and rows from the
 * bottom up, or from the top down if the height is negative. */
#include "decoder.h"

enum { FILE_HEADER = 14, OLD_HEADER = 12, HEADER = 40, PLAIN = 0, MASKS = 3, MASKS_AND_ALPHA = 6 };

typedef struct header {
    int64_t width, height; /* height < 0: from the top down */
    int64_t begin;         /* of the pixels in the file */
    int64_t bits, compression;
    int place[3]; /* of red, green and blue among the bytes of a pixel */
} header;

static uint32_t number(const unsigned char *p, int n) {
    uint32_t x = 0;
    while (n-- > 0)
        x = x << 8 | p[n];
    return x;
}

/* The byte of a pixel of which a mask takes all bits; -1: it takes other ones. */
static int place_of(uint32_t mask) {
    for (int k = 0; k < 4; k++)
        if (mask == (uint32_t)0xff << 8 * k)
            return k;
    return -1;
}

static ggl_status read_header(const picture_source *s, header *h, ggl_error *err) {
    const size_t size = s->n < FILE_HEADER + 4 ? 0 : number(s->data + FILE_HEADER, 4);
    const unsigned char *p = s->data + FILE_HEADER;
    const bool is_old = size == OLD_HEADER;
    if ((!is_old && size < HEADER) || size > s->n - FILE_HEADER)
        return ggl_fail(err, GGL_FORMAT, "%s: BMP that ends within its header, after %zu bytes",
                        s->name, s->n);
    *h = (header){.begin = number(s->data + 10, 4), .place = {2, 1, 0}};
    h->width = is_old ? (int64_t)number(p + 4, 2) : (int32_t)number(p + 4, 4);
    h->height = is_old ? (int64_t)number(p + 6, 2) : (int32_t)number(p + 8, 4);
    h->bits = number(p + (is_old ? 10 : 14), 2);
    h->compression = is_old ? PLAIN : number(p + 16, 4);
    if (h->compression != MASKS && h->compression != MASKS_AND_ALPHA)
        return GGL_OK;
    if (s->n - FILE_HEADER < HEADER + 12)
        return ggl_fail(err, GGL_FORMAT, "%s: BMP that ends within its header, after %zu bytes",
                        s->name, s->n);
    for (int c = 0; c < 3; c++)
        h->place[c] = place_of(number(p + HEADER + 4 * c, 4));
    return GGL_OK;
}

/* Only what every program writes, and no palettes, runs, or masks across bytes. */
static ggl_status check(const picture_source *s, const header *h, ggl_error *err) {
    const bool is_masked = h->compression == MASKS || h->compression == MASKS_AND_ALPHA;
    if ((h->bits != 24 && h->bits != 32) || (h->compression != PLAIN && !is_masked) ||
        (is_masked && h->bits != 32))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: is BMP with %lld bits for each pixel and compression %lld; 24 and 32 "
                        "bits without compression are read: convert it: ffmpeg -i %s out.ppm",
                        s->name, (long long)h->bits, (long long)h->compression, s->name);
    if (h->place[0] < 0 || h->place[1] < 0 || h->place[2] < 0)
        return llm_picture_unreadable(s, "BMP", "whose colors are not whole bytes:", err);
    return GGL_OK;
}

ggl_status llm_picture_bmp(llm_picture **out, const picture_source *s, ggl_error *err) {
    header h = {0};
    *out = NULL;
    ggl_status st = read_header(s, &h, err);
    if (st == GGL_OK)
        st = check(s, &h, err);
    const int64_t height = h.height < 0 ? -h.height : h.height;
    if (st == GGL_OK)
        st = llm_picture_sized(out, s, h.width, height, err);
    if (st != GGL_OK)
        return st;
    const int64_t n_pixel = h.bits / 8, n_row = (h.width * n_pixel + 3) / 4 * 4;
    const int64_t needed =
        n_row * (height - 1) + h.width * n_pixel; /* the last row may lack its padding */
    if (h.begin > (int64_t)s->n || needed > (int64_t)s->n - h.begin) {
        llm_picture_free(*out);
        *out = NULL;
        return ggl_fail(err, GGL_FORMAT,
                        "%s: BMP that ends early, after %zu bytes; its %lld bytes of pixels begin "
                        "at %lld",
                        s->name, s->n, (long long)needed, (long long)h.begin);
    }
    uint8_t *to = (*out)->rgb;
    for (int64_t y = 0; y < height; y++) {
        const unsigned char *from = s->data + h.begin + n_row * (h.height < 0 ? y : height - 1 - y);
        for (int64_t x = 0; x < h.width; x++, from += n_pixel)
            for (int c = 0; c < 3; c++)
                *to++ = from[h.place[c]];
    }
    return GGL_OK;
}
