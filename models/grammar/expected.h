/* Describes in words what may come next in a text, for messages. */
#ifndef LLM_GRAMMAR_EXPECTED_H
#define LLM_GRAMMAR_EXPECTED_H

#include "stack.h"

/* Describes what may follow `set`, the set on top of the stack, as llm_matcher_expected does. */
size_t llm_expected(llm_parser *p, llm_stack *s, llm_item_set set, char *buf, size_t size);

#endif
