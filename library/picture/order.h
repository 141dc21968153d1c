/* In which order the rows that were made of a picture stand in a text.
 *
 *     llm_picture_order o;
 *     st = llm_picture_order_new(&o, rule, place, n, err);
 *     for each i < o.n:
 *         o.at[i] is a row, or LLM_PICTURE_LINE behind the last row of a line
 *     llm_picture_order_fini(&o);
 *
 * Threads: any number may call these functions at the same time. */
#ifndef LIBRARY_PICTURE_ORDER_H
#define LIBRARY_PICTURE_ORDER_H

#include "ggl/status.h"
#include "llm/internal/arch.h"

enum { LLM_PICTURE_LINE = -1 };

typedef struct llm_picture_order {
    int64_t n;
    int32_t *at; /* [n] */
} llm_picture_order;

/* place: [n][3], as those of llm_media_rows; a row without a time (LLM_MEDIA_APART, LLM_MEDIA_ENDS_LINE) stands in no line. Ends of lines are there if the rule has texts for them.
 * GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_order_new(llm_picture_order *out, const llm_arch_picture *rule,
                                               const int32_t *place, int64_t n, ggl_error *err);
/* The same of pairs of lines: first the row that fills, then all that stands in a text between what fills before them and the next token, without ends of lines. n: with
 * those that have names. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_picture_pairs_new(llm_picture_order *out, const llm_arch_picture *rule,
                                               const int32_t *place, int64_t n, ggl_error *err);
void llm_picture_order_fini(llm_picture_order *o);

/* The lines and columns of a grid of nx x ny cells that show a picture of width x height pixels amid others, of which a line, or a column, that shows some of it is
 * counted as LLaVA-NeXT does: from *top to before *bottom, and from *left to before *right. */
void llm_picture_seen_cells(int64_t width, int64_t height, int64_t nx, int64_t ny, int64_t *left,
                            int64_t *right, int64_t *top, int64_t *bottom);

#endif
