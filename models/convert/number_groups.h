/* Numbers in groups: integer codes, and a scale for each x of them, maybe with a bias (RECIPE_GROUPS):
 *
 *     w = scale * code + bias
 *
 * llama2.c's checkpoints have signed bytes without a bias. MLX has codes of 2, 3, 4, 5, 6 or 8 bits,
 * which follow one another from the lowest bit of the first 32-bit word on, with a bias.
 *
 * Where a block type of GGUF has the same form, the codes become its codes, as they are:
 *
 *     bits   type   in blocks of 32
 *     2-4    q4_1   scale * code + bias
 *     5      q5_1   scale * code + bias
 *     8      q8_0   scale * code, of signed bytes without a bias
 *
 * Their scales and biases are f16. For MLX, all of a tensor's must be numbers that f16 holds. */
#ifndef LLM_NUMBER_GROUPS_H
#define LLM_NUMBER_GROUPS_H

#include "recipe.h"

#define LLM_GROUPS_BLOCK 32 /* elements of the block types */

/* Reads elements first .. first + n - 1 of a RECIPE_GROUPS. */
void llm_groups_read(const recipe *r, int64_t first, int64_t n, float *out);
/* Returns the type of numbers that is nearest to those of the recipe, a RECIPE_GROUPS: f32 if the
 * scales are, else f16 or bf16, by the error of some of the groups. */
ggl_type llm_groups_number_type(const recipe *r);
/* Makes the nearest type of each RECIPE_GROUPS in the recipe bf16 where it is f16 and one of all its
 * numbers may be too large for that. Reads all scales and biases of these. */
void llm_groups_settle(recipe *r);
/* Returns the error of some groups in r->nearest: the root mean square, relative to the numbers'. */
double llm_groups_number_error(const recipe *r);
/* Returns the block type that has the same codes as all sources of the recipe, and in which they stay
 * blocks; -1 if none. Reads all scales and biases. *error: as above, if a scale is rounded. */
int llm_groups_block_type(const recipe *r, double *error);
/* Writes elements first .. first + n - 1, whole blocks, as blocks of that type. Adds 32 to *bad for
 * each block with a scale or bias that is no number. */
void llm_groups_pack(const recipe *r, ggl_type type, int64_t first, int64_t n, void *out,
                     size_t *bad);
/* Returns the first RECIPE_GROUPS of a recipe; NULL: it has none. */
const recipe *llm_groups_of(const recipe *r);

#endif
