/* The lesser of two numbers of tokens, times or places. */
#ifndef LLM_LEAST_H
#define LLM_LEAST_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

#endif
