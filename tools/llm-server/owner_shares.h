/* Which client has most of what is kept for all of them, so that it makes room and takes nothing from those that have less. */
#ifndef LLM_SERVER_OWNER_SHARES_H
#define LLM_SERVER_OWNER_SHARES_H

#include <stddef.h>
#include <stdint.h>

/* A kept thing: whose it is, and how much it counts. */
typedef struct owner_share {
    uint64_t owner;
    size_t n;
} owner_share;

/* Returns the owner with the largest sum; among equal ones `own`, if it is one of them. Sorts the shares. */
uint64_t owner_of_most(owner_share *one, size_t n, uint64_t own);

#endif
