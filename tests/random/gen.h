/* From a seed, or from bytes that stand for its random choices, a program and a script. */
#ifndef RANDOM_GEN_H
#define RANDOM_GEN_H

#include <stddef.h>

#include "program.h"

typedef struct
    r_source { /* of choices: bytes while there are any (bytes not NULL), else a generator */
    uint64_t state;
    const uint8_t *bytes;
    size_t n_bytes;
} r_source;

enum { R_AVOID_UNFINISHED = 8 }; /* the schedule is freed while a batch is under way */

/* Forms that are left out, by name, while a fault in them is open: see r_avoidable. 0: none. */
extern unsigned r_avoid;
/* The k-th name; its bit in r_avoid is 1 << k. NULL past the end. */
const char *r_avoidable(int k);

/* 0 .. n-1. Bytes that are used up give 0. */
int r_choose(r_source *s, int n);

/* Always a legal program: what the library refuses of it is a fault. */
void r_generate(r_program *p, uint64_t seed, r_source *s);

/* Whether the script (which somebody has changed) does only what is allowed. */
bool r_is_legal(const r_program *p);

#endif
