/* Builds without libwebp. */
#include "decoder.h"

bool llm_picture_has_webp(void) {
    return false;
}

ggl_status llm_picture_webp(llm_picture **out, const picture_source *s, ggl_error *err) {
    *out = NULL;
    return llm_picture_unreadable(s, "WebP", PICTURE_LACKS("libwebp", "libwebp-dev"), err);
}
