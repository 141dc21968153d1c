#include <string.h>

#include "decoder.h"
#include "orientation.h"

/* How files begin: `n` bytes from byte `at` on. */
typedef struct picture_kind {
    const char *name;
    picture_decoder *read; /* NULL: nothing here reads it */
    int at, n;
    const char *bytes;
} picture_kind;

static const picture_kind kinds[] = {
    {"PNG", llm_picture_png, 0, 8, "\x89PNG\r\n\x1a\n"},
    {"JPEG", llm_picture_jpeg, 0, 3, "\xff\xd8\xff"},
    {"WebP", llm_picture_webp, 8, 4, "WEBP"},
    {"PPM", llm_picture_pnm, 0, 2, "P6"},
    {"PGM", llm_picture_pnm, 0, 2, "P5"},
    {"BMP", llm_picture_bmp, 0, 2, "BM"},
    {"PBM or PGM or PPM as text", NULL, 0, 2, "P1"},
    {"PBM or PGM or PPM as text", NULL, 0, 2, "P2"},
    {"PBM or PGM or PPM as text", NULL, 0, 2, "P3"},
    {"PBM", NULL, 0, 2, "P4"},
    {"PAM", NULL, 0, 2, "P7"},
    {"GIF", NULL, 0, 4, "GIF8"},
    {"TIFF", NULL, 0, 4, "II*\0"},
    {"TIFF", NULL, 0, 4, "MM\0*"},
    {"AVIF", NULL, 4, 8, "ftypavif"},
    {"AVIF", NULL, 4, 8, "ftypavis"},
    {"HEIC", NULL, 4, 7, "ftyphei"},
    {"HEIC", NULL, 4, 8, "ftypmif1"},
    {"a video (MP4)", NULL, 4, 4, "ftyp"},
    {"JPEG XL", NULL, 0, 2, "\xff\x0a"},
    {"JPEG XL", NULL, 4, 4, "JXL "},
    {"JPEG 2000", NULL, 4, 4, "jP  "},
    {"JPEG 2000", NULL, 0, 4, "\xff\x4f\xff\x51"},
    {"Photoshop's", NULL, 0, 4, "8BPS"},
    {"an icon (ICO)", NULL, 0, 4, "\0\0\1\0"},
    {"QOI", NULL, 0, 4, "qoif"},
    {"PDF", NULL, 0, 4, "%PDF"},
    {"SVG or another text of XML", NULL, 0, 4, "<svg"},
    {"SVG or another text of XML", NULL, 0, 5, "<?xml"},
    {"a page of HTML", NULL, 0, 5, "<html"},
    {"a page of HTML", NULL, 0, 9, "<!DOCTYPE"},
};

static const picture_kind *kind_of(const unsigned char *data, size_t n) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const picture_kind *k = &kinds[i];
        if ((size_t)(k->at + k->n) <= n && memcmp(data + k->at, k->bytes, (size_t)k->n) == 0)
            return k;
    }
    return NULL;
}

static ggl_status unknown_kind(const picture_source *s, ggl_error *err) {
    if (s->n == 0)
        return ggl_fail(err, GGL_FORMAT, "%s: is empty", s->name);
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: begins with \"%.*s\", as no kind of picture that is known here; this "
                    "build reads %s",
                    s->name, (int)(s->n < 4 ? s->n : 4), (const char *)s->data,
                    llm_picture_kinds());
}

ggl_status llm_picture_read(llm_picture **out, const void *bytes, size_t n, const char *name,
                            const llm_picture_limits *limits, ggl_error *err) {
    const llm_picture_limits l = limits ? *limits : (llm_picture_limits){0};
    const picture_source s = {bytes, n, name, l.pixels ? l.pixels : LLM_PICTURE_PIXELS};
    const int64_t most = l.bytes ? l.bytes : LLM_PICTURE_BYTES;
    *out = NULL;
    if (n > (uint64_t)most)
        return ggl_fail(err, GGL_LIMIT, "%s: has %zu bytes, more than the %lld that are read", name,
                        n, (long long)most);
    const picture_kind *kind = kind_of(s.data, n);
    if (!kind)
        return unknown_kind(&s, err);
    if (!kind->read)
        return llm_picture_unreadable(&s, kind->name, "which is not read here:", err);
    llm_picture *p;
    ggl_status st = kind->read(&p, &s, err);
    if (st == GGL_OK)
        st = llm_picture_turn(&p, llm_picture_orientation(s.data, n), name, err);
    if (st == GGL_OK)
        *out = p;
    return st;
}

const char *llm_picture_kinds(void) {
    static const char *const texts[] = {"PPM, BMP",
                                        "PNG, PPM, BMP",
                                        "JPEG, PPM, BMP",
                                        "PNG, JPEG, PPM, BMP",
                                        "WebP, PPM, BMP",
                                        "PNG, WebP, PPM, BMP",
                                        "JPEG, WebP, PPM, BMP",
                                        "PNG, JPEG, WebP, PPM, BMP"};
    return texts[(llm_picture_has_png() ? 1 : 0) + (llm_picture_has_jpeg() ? 2 : 0) +
                 (llm_picture_has_webp() ? 4 : 0)];
}
