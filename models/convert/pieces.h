/* Numbers of a converted tensor, some at a time, and the search for weights that are no numbers. */
#ifndef LLM_CONVERT_PIECES_H
#define LLM_CONVERT_PIECES_H

#include "recipe.h"

#define LLM_CONVERT_PIECE                                                                          \
    ((int64_t)1 << 18) /* numbers converted at a time: whole blocks of any type */

/* Reads elements first .. first + n - 1 and writes them to `out` as `type`: a type of numbers, or the
 * block type of the recipe (number_groups.h), then they must be whole blocks. x: [n], for use in between.
 * Adds the number of NaN and infinite elements to *bad. GGL_LIMIT: a number is too large for f16. */
GGL_NODISCARD ggl_status llm_convert_piece(recipe *r, const ggl_type_info *type, int64_t first,
                                           int64_t n, float *x, void *out, size_t *bad,
                                           ggl_error *err);
/* Counts NaN and infinite values among n numbers of the written type, by their exponents. */
size_t llm_convert_count_bad(const void *data, size_t n, ggl_type type);
/* Fails if a tensor has NaN or infinite weights, which make the model useless. */
GGL_NODISCARD ggl_status llm_convert_check_bad(const recipe *r, size_t n_bad, ggl_error *err);

#endif
