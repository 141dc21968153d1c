/* The parts of a picture that a model sees apart, besides the whole (llm_arch_tiles in llm/internal/arch.h).
 *
 *     llm_picture_tiles t;              // from width and height alone
 *     llm_picture *tile;
 *     st = llm_picture_tiles_for(&t, rule, p->width, p->height, "cat.jpg", &err);
 *     for each y < t.ny, x < t.nx:
 *         st = llm_picture_tile(&tile, rule, &t, p, y, x, "cat.jpg", &err);    // as what llm_picture_seen makes of the whole
 *
 * Threads: any number may call these functions at the same time. */
#ifndef LIBRARY_PICTURE_TILES_H
#define LIBRARY_PICTURE_TILES_H

#include "fit.h"
#include "picture.h"

typedef struct llm_picture_tiles {
    int64_t nx, ny;        /* tiles across and down; 0: the picture is seen as a whole alone */
    int64_t width, height; /* pixels of one */
    int64_t
        window; /* pixels of the squares of `all` that become tiles of another size; 0: they have that of tiles */
    llm_picture_fit all; /* the picture within all of them together: up to .left and .top */
} llm_picture_tiles;

/* Statuses of llm_picture_fit_for. */
GGL_NODISCARD ggl_status llm_picture_tiles_for(llm_picture_tiles *t, const llm_arch_picture *rule,
                                               int64_t width, int64_t height, const char *name,
                                               ggl_error *err);
/* Makes the tile in line y and column x of the grid. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_tile(llm_picture **out, const llm_arch_picture *rule,
                                          const llm_picture_tiles *t, const llm_picture *from,
                                          int64_t y, int64_t x, const char *name, ggl_error *err);
/* Makes all of them together. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_all_tiles(llm_picture **out, const llm_arch_picture *rule,
                                               const llm_picture_tiles *t, const llm_picture *from,
                                               const char *name, ggl_error *err);

#endif
