/* Builds without libjpeg. */
#include "decoder.h"

bool llm_picture_has_jpeg(void) {
    return false;
}

ggl_status llm_picture_jpeg(llm_picture **out, const picture_source *s, ggl_error *err) {
    *out = NULL;
    return llm_picture_unreadable(s, "JPEG", PICTURE_LACKS("libjpeg", "libjpeg-dev"), err);
}
