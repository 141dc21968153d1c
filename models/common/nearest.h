/* The nearest to a name that was not found, for "did you mean ..". */
#ifndef LLM_NEAREST_H
#define LLM_NEAREST_H

#include <stddef.h>

typedef struct llm_nearest {
    const char *wanted; /* borrowed */
    /* the nearest candidate so far, borrowed; NULL: none is near enough to be meant */
    const char *best;
    /* of `best`, in letters that differ; at first one more than counts as near */
    size_t distance;
} llm_nearest;

llm_nearest llm_nearest_to(const char *wanted);
/* Compares a candidate of `len` bytes; SIZE_MAX: up to the NUL. */
void llm_nearest_try(llm_nearest *n, const char *candidate, size_t len);

#endif
