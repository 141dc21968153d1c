/* Cuts a program that is wrong down to what is needed for that. */
#ifndef RANDOM_SHRINK_H
#define RANDOM_SHRINK_H

#include "run.h"

/* p and result become those of the least that still fails in the same variant. */
void r_shrink(r_program *p, r_result *result);

#endif
