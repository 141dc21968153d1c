#include "picture.h"

#include "ggl/internal/alloc.h"

ggl_status llm_picture_new(llm_picture **out, int64_t width, int64_t height, const char *name,
                           ggl_error *err) {
    const int64_t most = 1 << 30;
    *out = NULL;
    if (width < 1 || height < 1 || width > most || height > most)
        return ggl_fail(err, GGL_USAGE, "%s: a picture of %lld x %lld pixels", name,
                        (long long)width, (long long)height);
    size_t n;
    llm_picture *p = ggl_calloc(1, sizeof *p);
    if (p && ggl_size_mul((size_t)width, (uint64_t)height, &n))
        *p = (llm_picture){width, height, ggl_calloc(n, 3)};
    if (!p || !p->rgb) {
        llm_picture_free(p);
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory for %lld x %lld pixels", name,
                        (long long)width, (long long)height);
    }
    *out = p;
    return GGL_OK;
}

void llm_picture_free(llm_picture *p) {
    if (!p)
        return;
    ggl_free(p->rgb);
    ggl_free(p);
}
