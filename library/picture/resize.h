/* Resizes pictures, each byte as published processors compute it (llm_arch_resize in llm/internal/arch.h).
 *
 * Threads: any number may call these functions at the same time. */
#ifndef LIBRARY_PICTURE_RESIZE_H
#define LIBRARY_PICTURE_RESIZE_H

#include "llm/internal/arch.h"
#include "picture.h"

/* A part of the resized picture: width x height pixels from (x, y) on, and where it goes. Only these are computed. */
typedef struct picture_window {
    int64_t x, y, width, height;
    uint8_t *to;    /* the pixel (x, y) */
    int64_t stride; /* bytes from a row to the next one */
} picture_window;

/* Resizes `from` to width x height. The window lies in that. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_resize(const picture_window *w, llm_arch_resize how,
                                            const llm_picture *from, int64_t width, int64_t height,
                                            const char *name, ggl_error *err);

/* Sets shares[..] to those of the pixels first, first + 1 .. of which LLM_RESIZE_PIL_* makes pixel i, where n_from become n_to; returns their number, at most
 * n_from. They add up to 1. */
int64_t llm_picture_shares(llm_arch_resize how, int64_t i, int64_t n_from, int64_t n_to,
                           double *shares, int64_t *first);

/* --- for resize.c ---------------------------------------------------------------------------- */

/* LLM_RESIZE_PIL_*: resize_filter.c. */
GGL_NODISCARD ggl_status llm_picture_resize_filter(const picture_window *w, llm_arch_resize how,
                                                   const llm_picture *from, int64_t width,
                                                   int64_t height, const char *name,
                                                   ggl_error *err);

#endif
