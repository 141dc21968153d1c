/* Arrays of different items, where few values are possible. */
#ifndef LLM_GRAMMAR_UNIQUE_H
#define LLM_GRAMMAR_UNIQUE_H

#include "expr.h"

/* A value that may stand at a place, and its texts there. */
typedef struct llm_choice {
    int32_t value; /* which one, from 0 on; equal values have equal numbers */
    int32_t expr;
} llm_choice;

typedef struct llm_choices {
    llm_choice *choice;
    int32_t n;
} llm_choices;

typedef struct llm_unique {
    const llm_choices *first; /* [n_first] the first items */
    int32_t n_first, n_values;
    llm_choices rest; /* all later items */
    int64_t min, max; /* items; max LLM_EXPR_MANY: no limit */
    int32_t comma;
} llm_unique;

/* Sets *out to lists of such items with commas between them. Returns false, and sets nothing, if there would be
 * too many states. Failures of memory are in g->status. */
bool llm_unique_items(int32_t *out, llm_exprs *g, const llm_unique *u);

#endif
