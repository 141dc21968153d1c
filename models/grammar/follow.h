/* Which bytes may come after the text of a rule: tokens that go on with another byte need not be looked
 * at when a frame is left. */
#ifndef LLM_GRAMMAR_FOLLOW_H
#define LLM_GRAMMAR_FOLLOW_H

#include "pool.h"

/* Sets `follow` of all rules, to sets that may be too large but not too small. */
void llm_find_follow(llm_bx_pool *p);

#endif
