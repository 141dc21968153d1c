/* What reads a kind of picture: PPM and BMP by code of this folder, others by a library, if the build has it. */
#ifndef LIBRARY_PICTURE_DECODER_H
#define LIBRARY_PICTURE_DECODER_H

#include <stdbool.h>
#include <stddef.h>

#include "picture.h"

typedef struct picture_source {
    const unsigned char *data; /* of a file, from its first byte on */
    size_t n;
    const char *name; /* for messages */
    int64_t most;     /* pixels */
} picture_source;

/* Each reads one kind, which `s` begins as. *out is NULL if it fails: GGL_FORMAT, GGL_UNSUPPORTED, GGL_LIMIT, GGL_NOMEM. */
typedef ggl_status picture_decoder(llm_picture **out, const picture_source *s, ggl_error *err);
picture_decoder llm_picture_pnm, llm_picture_bmp;
/* By libraries: NAME_LIBRARY.c; in a build without one, GGL_UNSUPPORTED: NAME_none.c. llm_picture_has_NAME says which it is. */
picture_decoder llm_picture_png, llm_picture_jpeg, llm_picture_webp;
bool llm_picture_has_png(void);
bool llm_picture_has_jpeg(void);
bool llm_picture_has_webp(void);

/* A black picture of this size. GGL_FORMAT: a side is below 1; GGL_LIMIT: more than s->most pixels, or LLM_PICTURE_SIDE of a side; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_sized(llm_picture **out, const picture_source *s,
                                           int64_t width, int64_t height, ggl_error *err);
/* GGL_UNSUPPORTED: "x.gif: is GIF, " and the reason, and how to convert it. */
GGL_NODISCARD ggl_status llm_picture_unreadable(const picture_source *s, const char *kind,
                                                const char *reason, ggl_error *err);

/* Why a build without the library that reads a kind refuses it. WebAssembly has no such libraries. */
#ifdef LLM_WITHOUT_LIBRARIES
#define PICTURE_LACKS(library, package) "which is not read in WebAssembly:"
#else
#define PICTURE_LACKS(library, package)                                                            \
    "which this build cannot read: build it with " library " (Debian, Ubuntu: " package "), or"
#endif

#endif
