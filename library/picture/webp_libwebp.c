/* WebP, by libwebp. */
#include <string.h>

#include <webp/decode.h>

#include "decoder.h"

/* A picture within a file: a part of the canvas in animations, all of it elsewhere. */
typedef struct frame {
    const unsigned char *data;
    size_t n;
    int64_t x, y;
} frame;

static uint32_t number(const unsigned char *p, int n) {
    uint32_t x = 0;
    while (n-- > 0)
        x = x << 8 | p[n];
    return x;
}

/* The first frame of an animation, a chunk "ANMF": place and size in 24 bits each, and other numbers, before the chunks of a picture. */
static bool find_frame(const picture_source *s, frame *f) {
    enum { HEADER = 16 };
    for (size_t at = 12; at + 8 <= s->n;) {
        const unsigned char *const p = s->data + at;
        const size_t n = number(p + 4, 4);
        if (n > s->n - at - 8)
            return false;
        if (memcmp(p, "ANMF", 4) == 0 && n > HEADER) {
            *f = (frame){p + 8 + HEADER, n - HEADER, 2 * number(p + 8, 3), 2 * number(p + 11, 3)};
            return true;
        }
        at += 8 + n + n % 2;
    }
    return false;
}

static ggl_status damaged(const picture_source *s, VP8StatusCode code, ggl_error *err) {
    static const char *const words[] = {[VP8_STATUS_INVALID_PARAM] = "a wrong parameter",
                                        [VP8_STATUS_BITSTREAM_ERROR] = "its bits are no picture",
                                        [VP8_STATUS_UNSUPPORTED_FEATURE] =
                                            "it has a feature that libwebp does not know",
                                        [VP8_STATUS_SUSPENDED] = "it ends early",
                                        [VP8_STATUS_USER_ABORT] = "stopped",
                                        [VP8_STATUS_NOT_ENOUGH_DATA] = "it ends early"};
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", s->name);
    const bool is_known =
        code > 0 && (size_t)code < sizeof words / sizeof *words && words[code] != NULL;
    return ggl_fail(err, GGL_FORMAT, "%s: WebP that is damaged: %s", s->name,
                    is_known ? words[code] : "libwebp cannot read it");
}

static ggl_status decode(llm_picture **out, const picture_source *s, const frame *f, int64_t width,
                         int64_t height, ggl_error *err) {
    WebPDecoderConfig c;
    if (!WebPInitDecoderConfig(&c))
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: libwebp is of another version than its headers",
                        s->name);
    VP8StatusCode code = WebPGetFeatures(f->data, f->n, &c.input);
    if (code != VP8_STATUS_OK)
        return damaged(s, code, err);
    if (f->x + c.input.width > width || f->y + c.input.height > height)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: WebP whose first frame of %d x %d pixels at %lld, %lld lies outside "
                        "its %lld x %lld",
                        s->name, c.input.width, c.input.height, (long long)f->x, (long long)f->y,
                        (long long)width, (long long)height);
    ggl_status st = llm_picture_sized(out, s, width, height, err);
    if (st != GGL_OK)
        return st;
    const int64_t at = (f->y * width + f->x) * 3;
    c.output.colorspace = MODE_RGB;
    c.output.is_external_memory = 1;
    c.output.u.RGBA.rgba = (*out)->rgb + at;
    c.output.u.RGBA.stride = (int)width * 3;
    c.output.u.RGBA.size = (size_t)(width * height * 3 - at);
    code = WebPDecode(f->data, f->n, &c);
    WebPFreeDecBuffer(&c.output);
    if (code == VP8_STATUS_OK)
        return GGL_OK;
    llm_picture_free(*out);
    *out = NULL;
    return damaged(s, code, err);
}

bool llm_picture_has_webp(void) {
    return true;
}

ggl_status llm_picture_webp(llm_picture **out, const picture_source *s, ggl_error *err) {
    WebPBitstreamFeatures about;
    frame f = {s->data, s->n, 0, 0};
    *out = NULL;
    const VP8StatusCode code = WebPGetFeatures(s->data, s->n, &about);
    if (code != VP8_STATUS_OK)
        return damaged(s, code, err);
    if (about.has_animation && !find_frame(s, &f))
        return ggl_fail(err, GGL_FORMAT, "%s: WebP with an animation that has no frame", s->name);
    return decode(out, s, &f, about.width, about.height, err);
}
