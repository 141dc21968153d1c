#include "decoder.h"

#include "ggl/alloc.h"

static ggl_status allocate(llm_picture **out, int64_t width, int64_t height, const char *name,
                           ggl_error *err) {
    llm_picture *p = ggl_calloc(1, sizeof *p);
    if (p)
        *p = (llm_picture){width, height, ggl_calloc((size_t)(width * height), 3)};
    if (!p || !p->rgb) {
        llm_picture_free(p);
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory for %lld x %lld pixels", name,
                        (long long)width, (long long)height);
    }
    *out = p;
    return GGL_OK;
}

ggl_status llm_picture_sized(llm_picture **out, const picture_source *s, int64_t width,
                             int64_t height, ggl_error *err) {
    *out = NULL;
    if (width < 1 || height < 1)
        return ggl_fail(err, GGL_FORMAT, "%s: has %lld x %lld pixels, not 1 x 1 or more", s->name,
                        (long long)width, (long long)height);
    if (width > s->most / height) /* the product may overflow */
        return ggl_fail(err, GGL_LIMIT,
                        "%s: has %lld x %lld pixels, more than the %lld that are read: make it "
                        "smaller",
                        s->name, (long long)width, (long long)height, (long long)s->most);
    return allocate(out, width, height, s->name, err);
}

ggl_status llm_picture_new(llm_picture **out, int64_t width, int64_t height, const char *name,
                           ggl_error *err) {
    const int64_t most = 1 << 30;
    *out = NULL;
    if (width < 1 || height < 1 || width > most || height > most)
        return ggl_fail(err, GGL_USAGE, "%s: a picture of %lld x %lld pixels", name,
                        (long long)width, (long long)height);
    return allocate(out, width, height, name, err);
}

void llm_picture_free(llm_picture *p) {
    if (!p)
        return;
    ggl_free(p->rgb);
    ggl_free(p);
}

ggl_status llm_picture_unreadable(const picture_source *s, const char *kind, const char *reason,
                                  ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED, "%s: is %s, %s convert it: ffmpeg -i %s out.ppm", s->name,
                    kind, reason, s->name);
}
