/* The layout of a TABLE, between members.c and lengths.c. */
#ifndef GRAMMAR_MEMBERS_H
#define GRAMMAR_MEMBERS_H

#include "pool.h"

/* Arguments of a TABLE. */
enum { N_REQUIRED, MIN, MAX, PARTS, COMMA = PARTS, REST, FIRST };

/* True if a SET has member i. */
static inline bool is_used(const int32_t *set, int32_t i) {
    return (uint32_t)set[i / 32] >> (i % 32) & 1;
}

#endif
