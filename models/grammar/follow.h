/* Which bytes may come after the text of a rule: tokens that go on with another byte need not be looked
 * at when a frame is left. */
#ifndef LLM_GRAMMAR_FOLLOW_H
#define LLM_GRAMMAR_FOLLOW_H

#include "pool.h"

/* Sets `follow` of all rules, to sets that may be too large but not too small. Sets GGL_NOMEM, and
 * GGL_LIMIT if it takes more than max_work visits of nodes. */
void llm_find_follow(llm_bx_pool *p, size_t max_work);

#endif
