/* Whether JSON values are equal as JSON Schema means it: 1 and 1.0 are, and so are objects in any order. */
#ifndef LLM_GRAMMAR_SAME_H
#define LLM_GRAMMAR_SAME_H

#include "common/json.h"
#include "ggl/str.h"

/* Compares two numbers by their decimal texts. */
bool llm_same_number(ggl_str a, ggl_str b);
/* Adds the steps it took to *steps. */
bool llm_same_value(const json_value *a, const json_value *b, uint64_t *steps);

#endif
