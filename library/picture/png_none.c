/* Builds without libpng. */
#include "decoder.h"

bool llm_picture_has_png(void) {
    return false;
}

ggl_status llm_picture_png(llm_picture **out, const picture_source *s, ggl_error *err) {
    *out = NULL;
    return llm_picture_unreadable(s, "PNG", PICTURE_LACKS("libpng", "libpng-dev"), err);
}
