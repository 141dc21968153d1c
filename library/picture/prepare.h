/* Prepares a picture for a model that sees: its descriptor's rule (llm_arch_picture in llm/internal/arch.h) says how the picture becomes rows.
 *
 *     llm_picture_fit fit;              // from width and height alone, for planning: fit.n_rows
 *     llm_picture *seen;                // what the model sees, of 8 bits
 *     llm_picture_rows *rows;
 *     st = llm_picture_fit_for(&fit, rule, p->width, p->height, "cat.jpg", &err);
 *     st = llm_picture_seen(&seen, rule, p, "cat.jpg", &err);
 *     st = llm_picture_rows_new(&rows, rule, seen, "cat.jpg", &err);
 *
 * Threads: any number may call these functions at the same time. */
#ifndef LIBRARY_PICTURE_PREPARE_H
#define LIBRARY_PICTURE_PREPARE_H

#include "fit.h"
#include "picture.h"

/* Makes of a picture what is seen in its place, if it is too large or too thin for the rule (`longest`, `thin`); *out is NULL if it is not. GGL_LIMIT: a square of more than LLM_PICTURE_SEEN pixels; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_before(llm_picture **out, const llm_arch_picture *rule,
                                            const llm_picture *from, const char *name,
                                            ggl_error *err);
/* The picture as the model sees it, resized and padded or cut: fit.width x fit.height pixels. Statuses of llm_picture_fit_for; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_seen(llm_picture **out, const llm_arch_picture *rule,
                                          const llm_picture *from, const char *name,
                                          ggl_error *err);
/* A part of the picture that f describes, in its pixels. */
typedef struct llm_picture_part {
    int64_t x, y, width, height;
} llm_picture_part;

/* Makes a part of it alone: what is around the resized picture has the color. Statuses of llm_picture_new. */
GGL_NODISCARD ggl_status llm_picture_draw(llm_picture **out, const llm_picture *from,
                                          const llm_picture_fit *f, const llm_picture_part *part,
                                          llm_arch_resize resize, const uint8_t color[3],
                                          const char *name, ggl_error *err);
/* (byte / 255 - mean) / std for every byte of a picture, in to[height][width][3]. */
void llm_picture_normalize(float *to, const llm_arch_picture *rule, const llm_picture *seen);

/* The rows of one picture. Patches are in the order of lines; with blocks, blocks are, and the patches, or the smaller
 * squares of them, within each. */
typedef struct llm_picture_rows {
    int64_t n;      /* with those of zeros before the patches */
    int64_t n_row;  /* numbers of a row: 3 * patch * patch */
    int64_t nx, ny; /* patches */
    float *row;     /* [n][3][patch][patch]: x within the patch is innermost */
    int32_t *y,
        *x; /* [n]: the place in the grid of patches; 0 of rows before the patches; -1 - y and -1 - x of rows of zeros that fill a block */
    /* With a table: the entries y * table + x around the place, line by line from the top left, and the share of each (llm_arch_between). 0 of rows before the
     * patches. NULL without a table; entry is NULL, too, if there are shares of all entries. */
    int64_t n_entry;
    int32_t *entry; /* [n][n_entry] */
    float *share;   /* [n][n_entry] */
} llm_picture_rows;

/* Rows of a picture that llm_picture_seen has made. GGL_USAGE: the picture has another size than patches of this rule make; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_rows_new(llm_picture_rows **out, const llm_arch_picture *rule,
                                              const llm_picture *seen, const char *name,
                                              ggl_error *err);
void llm_picture_rows_free(llm_picture_rows *r); /* NULL is fine */

#endif
