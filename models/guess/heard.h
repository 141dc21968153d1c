/* Rows that were heard of tokens of a session's slots. */
#ifndef LLM_GUESS_HEARD_H
#define LLM_GUESS_HEARD_H

#include "llm/internal/guess.h"

/* Returns the row [n_row] of the token at this position of the slot, valid until more is heard; NULL: it was not heard, or
 * another token was there. */
const float *llm_heard_row(const llm_heard *h, int slot, int64_t pos, int32_t token);
int64_t llm_heard_n_row(const llm_heard *h);
/* Forgets rows of the slot before this position, if they are many. */
void llm_heard_drop(llm_heard *h, int slot, int64_t pos);

#endif
