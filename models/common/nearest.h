/* Finds the name nearest to one that does not exist, for "did you mean ..". */
#ifndef LLM_NEAREST_H
#define LLM_NEAREST_H

#include <stddef.h>

typedef struct llm_nearest {
    const char *wanted; /* borrowed */
    /* the nearest candidate so far, borrowed; NULL: none is near enough */
    const char *best;
    /* number of edits from `wanted` to `best`; at first one more than is near enough */
    size_t distance;
} llm_nearest;

llm_nearest llm_nearest_to(const char *wanted);
/* Compares a candidate of `len` bytes; SIZE_MAX: up to its NUL. */
void llm_nearest_try(llm_nearest *n, const char *candidate, size_t len);

#endif
