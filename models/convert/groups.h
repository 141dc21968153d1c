/* Numbers in groups: integer codes, and a scale for each x codes, maybe with a bias (RECIPE_GROUPS):
 *
 *     w = scale * code + bias
 *
 * In llama2.c's checkpoints codes are signed bytes without a bias. */
#ifndef LLM_GROUPS_H
#define LLM_GROUPS_H

#include "recipe.h"

/* Reads elements first .. first + n - 1. */
void llm_groups_read(const recipe *r, int64_t first, int64_t n, float *out);

#endif
