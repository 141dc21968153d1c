/* Reads pictures: red, green and blue of 8 bits for each pixel.
 *
 *     llm_picture *p;
 *     st = llm_picture_read_file(&p, "cat.jpg", NULL, &err);
 *     if (st == GGL_OK) {
 *         .. p->rgb[(y * p->width + x) * 3 + channel] ..
 *         llm_picture_free(p);
 *     }
 *
 * The first bytes tell the kind of a file, never its name. PPM and PGM (P5, P6) and BMP without compression are read by code of this folder,
 * PNG, JPEG and WebP by libpng, libjpeg and libwebp, if the build has them. The result is what the processors of published models see, which
 * use Pillow's convert("RGB"): grey and palettes become colors, alpha is dropped, not blended; CMYK is turned into RGB without a
 * profile, and profiles and gamma do not count. One difference: of grey with 16 bits the higher 8 count, as of colors, where Pillow cuts off at 255.
 * The orientation that a camera wrote (EXIF) is applied; of an animation the first frame is read.
 *
 * A damaged picture, or one that ends early, is an error, because a model would describe what is not there.
 *
 * Threads: any number may call these functions at the same time. */
#ifndef LIBRARY_PICTURE_H
#define LIBRARY_PICTURE_H

#include <stdint.h>

#include "ggl/status.h"

typedef struct llm_picture {
    int64_t width, height; /* 1 or more */
    uint8_t *rgb;          /* [height][width][3] */
} llm_picture;

enum {
    LLM_PICTURE_PIXELS = 178956970, /* 512 MiB of 3 bytes; beyond it Pillow stops, too */
    LLM_PICTURE_SIDE = 65535, /* as of JPEG; resizing needs memory for it times the new width */
    LLM_PICTURE_BYTES = 256 * 1048576 /* of a file */
};

typedef struct llm_picture_limits {
    int64_t
        pixels; /* of the picture, checked before its memory is allocated; 0: LLM_PICTURE_PIXELS */
    int64_t bytes; /* of the file; 0: LLM_PICTURE_BYTES */
} llm_picture_limits;

/* Reads a picture from the bytes of a file; `name` is for messages, which begin with it. limits NULL: the defaults. GGL_UNSUPPORTED: what kind of
 * file it is, and what reads it; GGL_LIMIT: it is too large; GGL_FORMAT: it is damaged; GGL_NOMEM. *out is NULL then. */
GGL_NODISCARD ggl_status llm_picture_read(llm_picture **out, const void *bytes, size_t n,
                                          const char *name, const llm_picture_limits *limits,
                                          ggl_error *err);
/* The same for a file, with "-" standard input. GGL_IO, too. */
GGL_NODISCARD ggl_status llm_picture_read_file(llm_picture **out, const char *path,
                                               const llm_picture_limits *limits, ggl_error *err);
/* A black picture. GGL_NOMEM; GGL_USAGE: a side is below 1, or above 2^30. */
GGL_NODISCARD ggl_status llm_picture_new(llm_picture **out, int64_t width, int64_t height,
                                         const char *name, ggl_error *err);
void llm_picture_free(llm_picture *p); /* NULL is fine */

/* What this build reads: "PNG, JPEG, WebP, PPM, BMP". */
const char *llm_picture_kinds(void);

#endif
