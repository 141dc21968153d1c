/* PPM and PGM with binary samples, P6 and P5: a header of words, one blank, and rows of one or two bytes for each sample. */
#include "decoder.h"

typedef struct header {
    int64_t width, height, largest;
    size_t at; /* of the first sample */
} header;

static bool is_blank(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads a number behind blanks and comments, which reach from # to the end of a line. */
static bool read_number(const picture_source *s, size_t *at, int64_t *to) {
    const size_t begin = *at;
    while (*at < s->n && (is_blank(s->data[*at]) || s->data[*at] == '#')) {
        if (s->data[*at] == '#')
            while (*at < s->n && s->data[*at] != '\n' && s->data[*at] != '\r')
                ++*at;
        else
            ++*at;
    }
    const bool is_apart = *at > begin;
    size_t n_digits = 0;
    *to = 0;
    for (; *at < s->n && s->data[*at] >= '0' && s->data[*at] <= '9' && n_digits < 10; n_digits++)
        *to = *to * 10 + (s->data[(*at)++] - '0');
    return is_apart && n_digits > 0 && n_digits < 10;
}

static bool read_header(const picture_source *s, header *h) {
    h->at = 2;
    if (!read_number(s, &h->at, &h->width) || !read_number(s, &h->at, &h->height) ||
        !read_number(s, &h->at, &h->largest) || h->at >= s->n || !is_blank(s->data[h->at]))
        return false;
    h->at++;
    return true;
}

/* The sample as a share of the largest one, rounded to a byte; one that is larger is taken for the largest. */
static uint8_t scaled(int64_t x, int64_t largest) {
    return (uint8_t)(x >= largest ? 255 : (x * 510 + largest) / (2 * largest));
}

ggl_status llm_picture_pnm(llm_picture **out, const picture_source *s, ggl_error *err) {
    header h;
    *out = NULL;
    if (!read_header(s, &h))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: PPM or PGM without width, height and largest value in its header",
                        s->name);
    if (h.largest < 1 || h.largest > 65535)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: PPM or PGM with the largest value %lld, not 1 to 65535", s->name,
                        (long long)h.largest);
    ggl_status st = llm_picture_sized(out, s, h.width, h.height, err);
    if (st != GGL_OK)
        return st;
    const int n_channels = s->data[1] == '6' ? 3 : 1, size = h.largest > 255 ? 2 : 1;
    const int64_t n_bytes = h.width * h.height * n_channels * size;
    if ((uint64_t)n_bytes > s->n - h.at) {
        llm_picture_free(*out);
        *out = NULL;
        return ggl_fail(err, GGL_FORMAT,
                        "%s: PPM or PGM that ends early, after %zu of %lld bytes of its pixels",
                        s->name, s->n - h.at, (long long)n_bytes);
    }
    const unsigned char *from = s->data + h.at;
    for (int64_t i = 0; i < h.width * h.height * 3; i++) {
        const int64_t x = size == 2 ? from[0] << 8 | from[1] : from[0];
        (*out)->rgb[i] = scaled(x, h.largest);
        if (n_channels == 3 || i % 3 == 2)
            from += size;
    }
    return GGL_OK;
}
