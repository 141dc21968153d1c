/* How a camera was held when it took a picture, as the file says in a block of EXIF.
 *
 * Threads: any number may call these functions at the same time. */
#ifndef LIBRARY_PICTURE_ORIENTATION_H
#define LIBRARY_PICTURE_ORIENTATION_H

#include <stddef.h>

#include "picture.h"

/* Returns the tag 0x0112 of EXIF in a JPEG, PNG or WebP, 1 to 8; 1, upright, if there is none, or nothing that can be read. */
int llm_picture_orientation(const unsigned char *data, size_t n);

/* Turns and mirrors a picture, so that it is upright. *p is freed, and NULL, if there is no memory. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_turn(llm_picture **p, int orientation, const char *name,
                                          ggl_error *err);

#endif
