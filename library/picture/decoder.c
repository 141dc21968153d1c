#include "decoder.h"

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
    if (width > LLM_PICTURE_SIDE || height > LLM_PICTURE_SIDE)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: has %lld x %lld pixels, but a side may have at most %d: make it "
                        "smaller",
                        s->name, (long long)width, (long long)height, LLM_PICTURE_SIDE);
    return llm_picture_new(out, width, height, s->name, err);
}

ggl_status llm_picture_unreadable(const picture_source *s, const char *kind, const char *reason,
                                  ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED, "%s: is %s, %s convert it: ffmpeg -i %s out.ppm", s->name,
                    kind, reason, s->name);
}
